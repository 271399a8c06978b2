# SPDX-License-Identifier: Apache-2.0
"""Devices that threads open and release, with ThreadSanitizer."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from checked_programs import COMPILER, THREADS, check_program
from idle_clock import HANG_S

from native_layers import NATIVE


def test_devices_open_idle_and_close_on_several_threads(tmp_path: Path) -> None:
    """No piece of memory has two owners, and the end closes everything."""
    tests = Path(__file__).resolve().parents[1]
    library = tmp_path / "libcuda.so.1"
    options = ["-std=c++20", "-shared", "-fPIC", "-O1", "-Wl,-soname,libcuda.so.1"]
    driver = str(tests / "cuda" / "fake_driver.cpp")
    subprocess.run([COMPILER, *options, driver, "-o", str(library)], check=True, timeout=HANG_S)
    native = [NATIVE / "gpu" / f"{name}.cpp" for name in ("cuda", "cuda_driver", "idle_devices")]
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    check_program(tmp_path, [tests / "native" / "idle_devices_threads.cpp", *native], *THREADS, environment=environment)
