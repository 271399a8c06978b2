# SPDX-License-Identifier: Apache-2.0
"""`gpu_memory_limit` to the byte: an allocation that fits is not refused for the needs of a later batch."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[1] / "src" / "stoker" / "native"


def test_an_allocation_that_fits_succeeds(tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
    native = [NATIVE / "gpu" / f"{name}.cpp" for name in ("memory", "null", "block_pool")]
    sources = [HERE / "memory_limits.cpp", *native]
    program = tmp_path / "limits"
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    flags = ["-std=c++20", "-O1", "-g1", *checks, "-pthread", f"-I{NATIVE}"]
    subprocess.run([compiler, *flags, *map(str, sources), "-o", str(program), "-ldl"], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
