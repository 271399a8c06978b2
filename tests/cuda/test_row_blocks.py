# SPDX-License-Identifier: Apache-2.0
"""Thread blocks of rows: any number of rows and blocks, in launches that a GPU takes."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[1] / "src" / "stoker" / "native"


def test_blocks_find_their_rows(tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
    program = tmp_path / "row_blocks"
    checks = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    flags = ["-std=c++20", "-O1", "-g1", *checks, f"-I{NATIVE}", f"-I{HERE.parent / 'native'}"]
    subprocess.run([compiler, *flags, str(HERE / "row_blocks.cpp"), "-o", str(program)], check=True)
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
