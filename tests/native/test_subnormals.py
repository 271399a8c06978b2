# SPDX-License-Identifier: Apache-2.0
"""Filters of bytes compute with no subnormal numbers, which are slow on Intel processors."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest
from built_objects import built_object
from checked_programs import COMPILER

from native_layers import NATIVE, list_sources
from tests.idle_clock import HANG_S


@pytest.mark.skipif(platform.machine() != "x86_64", reason="reads a register of x86-64 processors")
def test_filters_of_bytes_meet_no_subnormal_numbers(tmp_path: Path) -> None:
    program, own = tmp_path / "subnormals_check", Path(__file__).parent / "subnormals_check.cpp"
    linked = [built_object(source) or source for source in list_sources(["filter", "resample"])]
    command = [COMPILER, "-std=c++20", "-O1", "-ffp-contract=off", f"-I{NATIVE}", own, *linked, "-o", program]
    built = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=HANG_S)
    assert built.returncode == 0, built.stderr[-4000:]
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(("1000 operations", "2000 operations", "3000 operations")), done.stdout
