# SPDX-License-Identifier: Apache-2.0
"""Threads that read ahead, with ThreadSanitizer."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from idle_clock import HANG_S

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[1] / "src" / "stoker" / "native"


def test_rows_come_and_go_while_threads_read_ahead(tmp_path: Path) -> None:
    """The bound in bytes holds, released rows make room, errors end no thread, and ``close`` ends all of them."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
    program = tmp_path / "threads"
    flags = ["-std=c++20", "-O0", "-g1", "-fsanitize=thread", "-pthread", f"-I{NATIVE}"]
    sources = [str(HERE / "read_ahead_threads.cpp"), str(NATIVE / "io/read_ahead.cpp")]
    subprocess.run([compiler, *flags, *sources, "-o", str(program)], check=True, timeout=HANG_S)
    # ThreadSanitizer needs an address space without randomization.
    command = [*(["setarch", "--addr-no-randomize"] if shutil.which("setarch") else []), str(program)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANG_S)
    assert found.returncode == 0, found.stdout + found.stderr[-4000:]
