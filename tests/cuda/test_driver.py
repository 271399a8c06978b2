# SPDX-License-Identifier: Apache-2.0
"""What the driver fails at while a device is opened leaves nothing behind: streams, events, the device's context."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import ctypes
from stoker.native import _native

driver = ctypes.CDLL("libcuda.so.1")
assert _native.gpu.count_cuda() == 1
failed = 0
while True:
    driver.fake_fail_after(failed)
    try:
        device = _native.gpu.open_cuda(0)
        break
    except _native.gpu.DeviceFailure as failure:
        assert "as it was told (CUDA error 999)" in str(failure), failure
    assert driver.fake_alive() == 0, (failed, driver.fake_alive())
    failed += 1
assert driver.fake_alive() > 5
del device
print(failed, driver.fake_alive())
"""


def test_a_device_that_cannot_be_opened_leaves_nothing(tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
    source = Path(__file__).with_name("fake_driver.cpp")
    library = tmp_path / "libcuda.so.1"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O0", "-Wl,-soname,libcuda.so.1", str(source), "-o", str(library)], check=True
    )
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    failed, alive = map(int, done.stdout.split())
    assert failed >= 8, "every call was made to fail once"
    assert alive == 0
