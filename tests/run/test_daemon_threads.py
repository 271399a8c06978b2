# SPDX-License-Identifier: Apache-2.0
"""Exit of the interpreter while daemon threads are in native code without the GIL."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.run.pipelines import environment, files_of

NATIVE = Path(__file__).resolve().parents[2] / "src" / "stoker" / "native"

CALLS = {
    "decode": "_native.jpeg.jpeg_decode(data)",
    "check": "_native.jpeg.jpeg_check(data, 1 << 30)",
    "resample": "_native.resample(image, 300, 300, None, 2, 2, True)",
    "affine": "_native.affine(image, [1.0, 0.1, 0.0, 0.1, 1.0, 0.0], 500, 500, True, None)",
    "make recipes": "_native.recipe.materialize(order())",
    "wait for worker threads": "waiting(0.0005)",
    "read a file": "blocks.read(fd, size)",
    "make a file reference": "_native.recipe.make_file_ref(fd, path, 0.0)",
    "read a file by reference": "_native.recipe.read_file_ref(reference)",
    "check reference": "_native.recipe.is_file_ref_unchanged(reference), _native.recipe.is_file_ref_of(reference, fd)",
    "count devices": "_native.gpu.count_cuda()",
}

PROGRAM = """
import os, sys, threading, time
import numpy as np
from stoker.native import _native

path = os.fsencode(sys.argv[1])
fd = os.open(path, os.O_RDONLY)
size = os.fstat(fd).st_size
data = os.pread(fd, size, 0)
image = np.zeros((900, 900, 3), np.uint8)
blocks = _native.recipe.block_pool(2)
reference = _native.recipe.make_file_ref(fd, path, 0.0)
DECODE = [name for name, *_ in _native.recipe.OPS].index("Decode")
pool = _native.recipe.WorkerPool(1)

def order(count=3):
    numbers = np.array([DECODE, -1, 3, 0, 0, 8, 8, 0] * count, np.float64)
    return _native.recipe.make_batch(numbers, 8 * np.arange(count + 1), [data_array] * count, [], [])

def waiting(timeout_s):
    pool.wait(never, timeout_s)

data_array = np.frombuffer(data, np.uint8)
never = order()  # is not submitted to the pool

def work():
    while True:
        CALL

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
"""


@pytest.fixture(scope="module")
def file(jpegs: Path) -> str:
    return max(files_of(jpegs), key=lambda name: Path(name).stat().st_size)


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_the_interpreter_ends(file: str, call: str) -> None:
    """Python unwinds the stack of a thread that then requests the GIL. This must not abort the process."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("CALL", call), file],
        capture_output=True, text=True, env=environment(), check=False, timeout=60,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_gil_is_released_in_one_way() -> None:
    """Only `without_gil` (bind/gil.hpp) releases the GIL. Its comment explains why nanobind's way aborts."""
    released = re.compile(r"\bgil_scoped_release\b|\bPyEval_SaveThread\b|\bPy_BEGIN_ALLOW_THREADS\b")
    found = {}
    for path in [p for p in NATIVE.rglob("*") if p.suffix in (".hpp", ".cpp", ".ipp", ".cuh")]:
        code = re.sub(r"//.*", "", path.read_text(encoding="utf-8"))
        found[path.relative_to(NATIVE).as_posix()] = released.findall(code)
    assert {name: uses for name, uses in found.items() if uses} == {"bind/gil.hpp": ["PyEval_SaveThread"]}
