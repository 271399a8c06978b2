# SPDX-License-Identifier: Apache-2.0
"""Library work among the launches of a batch: each call in order, on the batch's stream."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[1] / "src" / "stoker" / "native"


def test_calls_are_issued_in_their_places(tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
    gpu = [NATIVE / "gpu" / f"{name}.cpp" for name in ("block_pool", "inputs", "memory", "null", "device_resources")]
    plan = [NATIVE / "plan" / f"{name}.cpp" for name in ("check", "plan")]
    sources = [HERE / "library_calls.cpp", *gpu, *plan, NATIVE / "run" / "job_on_device.cpp"]
    program = tmp_path / "calls"
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    flags = ["-std=c++20", "-O0", "-g1", *checks, "-pthread", f"-I{NATIVE}"]
    subprocess.run([compiler, *flags, *map(str, sources), "-o", str(program), "-ldl"], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
