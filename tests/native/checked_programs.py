# SPDX-License-Identifier: Apache-2.0
"""Test programs in C++ with native sources, compiled with sanitizers."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from idle_clock import HANG_S

from native_layers import NATIVE

ADDRESSES = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
THREADS = ("-fsanitize=thread",)
COMPILER = os.environ.get("CXX") or shutil.which("g++") or "c++"


def compile_unit(out: Path, sources: Sequence[Path], *options: str) -> None:
    """Compile sources as one translation unit: reading their headers takes most of the time, and is done once."""
    unit = out.with_suffix(".unit.cpp")
    unit.write_text("".join(f'#include "{source}"\n' for source in sources))
    command = [COMPILER, "-std=c++20", "-g1", f"-I{NATIVE}", *options, str(unit), "-o", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stderr[-4000:]


def check_program(folder: Path, sources: Sequence[Path], *options: str) -> None:
    """Compile a program and run it: it must end without an error."""
    program = folder / "program"
    compile_unit(program, sources, "-O0", "-pthread", *options, "-ldl")
    # ThreadSanitizer needs an address space without randomization.
    without = ["setarch", "--addr-no-randomize"] if THREADS[0] in options and shutil.which("setarch") else []
    done = subprocess.run([*without, str(program)], capture_output=True, text=True, check=False, timeout=HANG_S)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
