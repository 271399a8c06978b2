# SPDX-License-Identifier: Apache-2.0
"""Floor of the benchmark of arrays on a GPU: its reads, copies and errors, and that it releases all objects."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from idle_clock import HANG_S

from benchmarks.arrays_gpu import build_floor, measure_floor
from stoker import DeviceError

ROOT = Path(__file__).resolve().parents[2]

# Every call of the driver fails once, and once none does.
WITH_DRIVER = """
import ctypes, json, sys
from pathlib import Path
from benchmarks.arrays_gpu import build_floor, measure_floor
from stoker import DeviceError

driver = ctypes.CDLL("libcuda.so.1")
driver.fake_failed.restype = driver.fake_noted.restype = ctypes.c_char_p
function, files = build_floor(Path(sys.argv[1])), sys.argv[2:]
failed = set()
for calls in range(100):
    driver.fake_fail_after(calls, 999)
    try:
        measure_floor(function, files, 3000, 2, 60.0, on_gpu=True)
    except DeviceError as error:
        failed.add(driver.fake_failed().decode())
        assert "failed with 999" in str(error), error
    assert driver.fake_alive() == 0, calls
driver.fake_fail_after(1 << 30, 999)
driver.fake_note(1)
rate, text = measure_floor(function, files, 3000, 2, 0.05, on_gpu=True)
driver.fake_note(0)
noted = driver.fake_noted().decode().split()
print(json.dumps([rate, text, driver.fake_alive(), driver.fake_in_flight(), sorted(failed), noted]))
"""


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    found = [tmp_path / f"{i}" for i in range(3)]
    for file in found:
        file.write_bytes(bytes(10_000))
    return [str(file) for file in found]


def test_reads_of_the_floor_have_a_rate(tmp_path: Path, files: list[str]) -> None:
    rate, text = measure_floor(build_floor(tmp_path), files, 3000, 3, 0.05, on_gpu=False)
    assert rate > 0 and text == "3 threads"


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, files: list[str]) -> None:
    Path(files[2]).write_bytes(bytes(9_999))  # shorter than the first one
    with pytest.raises(DeviceError, match="pread failed"):
        measure_floor(build_floor(tmp_path), files, 3000, 2, HANG_S, on_gpu=False)


def test_copies_of_the_floor_use_the_driver(tmp_path: Path, files: list[str]) -> None:
    compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
    source = ROOT / "tests/cuda/fake_driver.cpp"
    options = ["-std=c++20", "-shared", "-fPIC", "-O0", "-Wl,-soname,libcuda.so.1"]
    subprocess.run([compiler, *options, str(source), "-o", str(tmp_path / "libcuda.so.1")], check=True, timeout=HANG_S)
    paths = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", WITH_DRIVER, str(tmp_path), *files], capture_output=True, text=True, check=False,
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": paths}, timeout=HANG_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: Any = json.loads(done.stdout)
    rate, text, alive, in_flight, failed, noted = found
    assert rate > 0 and text == "2 threads" and alive == 0 and in_flight == 0
    calls = {
        "cuDeviceGet", "cuDevicePrimaryCtxRetain", "cuStreamCreateWithPriority", "cuMemAlloc_v2", "cuMemHostAlloc",
        "cuEventCreate", "cuMemcpyHtoDAsync_v2", "cuEventRecord", "cuEventSynchronize",
    }  # fmt: skip
    assert set(failed) == calls
    assert noted.count("cuMemcpyHtoDAsync_v2") == noted.count("cuEventRecord") > 0
    assert noted.count("cuStreamSynchronize") >= 2
