# SPDX-License-Identifier: Apache-2.0
"""The table of known JPEG files under several threads, with ThreadSanitizer."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[1] / "src" / "stoker" / "native"


def test_several_threads_find_files(tmp_path: Path) -> None:
    """One thread writes the entry of a file. All others see the whole entry or none, and packed entries round-trip."""
    compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
    sources = [
        HERE / "jpeg_index_threads.cpp",
        NATIVE / "gpu_kernels/jpeg_index.cpp",
        NATIVE / "gpu_kernels/jpeg_index_store.cpp",
    ]
    program = tmp_path / "threads"
    flags = ["-std=c++20", "-O1", "-g1", "-fsanitize=thread", "-pthread", f"-I{NATIVE}"]
    subprocess.run([compiler, *flags, *map(str, sources), "-o", str(program)], check=True)
    # ThreadSanitizer needs an address space without randomization.
    command = [*(["setarch", "--addr-no-randomize"] if shutil.which("setarch") else []), str(program)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr[-4000:]
