# SPDX-License-Identifier: Apache-2.0
"""Allocation counter: a small preloaded library that counts the larger allocations of a contender."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("native") / "count_allocations.cpp"


def build(folder: Path) -> Path | None:
    """Compile the counter into a folder; None if there is no compiler or it fails."""
    compiler = os.environ.get("CXX") or shutil.which("c++") or shutil.which("g++")
    if compiler is None:
        return None
    library = folder.resolve() / "count_allocations.so"
    command = [compiler, "-std=c++20", "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    done = subprocess.run(command, capture_output=True, check=False)
    return library if done.returncode == 0 else None


def counted() -> int:
    """Return the number of allocations of 4 KiB or more in this process, which must have preloaded the counter."""
    count = ctypes.CDLL(None).bench_large_allocations
    count.restype = ctypes.c_uint64
    return int(count())
