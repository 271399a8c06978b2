# SPDX-License-Identifier: Apache-2.0
"""System calls that signals interrupt, as on network file systems: Stoker still reads the files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.idle_clock import HANG_S

PROGRAM = """
import ctypes, glob, os, sys
import numpy as np
from stoker import fn, pipeline_def
from stoker.native import _native

paths = sorted(glob.glob(sys.argv[1] + "/*/*.jpg"))[:8]
expected = []
for path in paths:
    with open(path, "rb") as file:
        expected.append(file.read())
wrapped = ctypes.CDLL(None)
reads = ctypes.c_int.in_dll(wrapped, "interrupted_reads")
opens = ctypes.c_int.in_dll(wrapped, "interrupted_opens")

before = reads.value
blocks = _native.recipe.block_pool(1)
for path, data in zip(paths, expected):
    with open(path, "rb") as file:
        got = blocks.read(file.fileno(), len(data))
        assert got is not None and got.tobytes() == data
        reference = _native.recipe.make_file_ref(file.fileno(), os.fsencode(path), -1e9)
    assert reference is not None and _native.recipe.read_file_ref(reference) == data
assert reads.value >= before + 2 * len(paths), "nothing was interrupted"

@pipeline_def(batch_size=8, num_threads=1, prefetch_queue_depth=1, device_id=None)
def files():
    data, _ = fn.readers.file(files=paths)
    return data

before = opens.value
with files() as pipe:
    batch = pipe.run()[0]
    assert [np.asarray(row).tobytes() for row in batch] == expected
assert opens.value >= before + len(paths), "nothing was interrupted"
"""


def test_files_are_read_though_signals_interrupt(jpegs: Path, tmp_path: Path) -> None:
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler, which builds the library that the test preloads")
    library = tmp_path / "interrupting.so"
    source = Path(__file__).with_name("interrupting.c")
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True, timeout=HANG_S
    )
    environ = {**os.environ, "LD_PRELOAD": str(library)}
    command = [sys.executable, "-c", PROGRAM, str(jpegs)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
