# SPDX-License-Identifier: Apache-2.0
"""Startup times: the import, and the first batch. Each figure comes from a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

from benchmarks.case import MS, Bar, Case, Contender, Sample
from benchmarks.cases.training_chain import make_pipeline
from benchmarks.data import Data
from benchmarks.library import DALI, STOKER, consume

ORDER = 60

# The time of NumPy's import is not counted, because every user has loaded it.
_IMPORT = """
import time, numpy
start = time.perf_counter()
import {names}
print(1e3 * (time.perf_counter() - start))
"""
_FIRST_BATCH = """
from benchmarks.cases.startup import first_batch_ms
print(first_batch_ms({library!r}, {root!r}))
"""
_IMPORT_NAMES = {STOKER: "stoker", DALI: "nvidia.dali, nvidia.dali.fn, nvidia.dali.types"}


def time_import(data: Data, *, library: str) -> Sample:
    """Return the milliseconds of the import, without NumPy's."""
    __import__(library)  # writes the byte code, and fails if the library is missing
    return Sample(lambda: _run(_IMPORT.format(names=_IMPORT_NAMES[library])))


def time_first_batch(data: Data, *, library: str) -> Sample:
    """Return the milliseconds from a built pipeline to its first batch."""
    __import__(library)
    return Sample(lambda: _run(_FIRST_BATCH.format(library=library, root=data.root)))


def first_batch_ms(library: str, root: str) -> float:
    """Build the training chain, then time its first batch; called in a fresh interpreter."""
    pipeline: Any = make_pipeline(library, Data(root), threads=2)
    start = time.perf_counter()
    consume(pipeline.run())
    return 1e3 * (time.perf_counter() - start)


def _run(code: str) -> float:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
    return float(done.stdout.split()[-1])


def _pair(function: str) -> tuple[Contender, ...]:
    return (Contender("stoker", function, {"library": STOKER}), Contender("DALI", function, {"library": DALI}, "peers"))


CASES = (
    Case(
        "import",
        "Import, on top of NumPy's",
        MS,
        _pair("time_import"),
        (Bar("time", "stoker", at_most=50),),
        note="Warm: byte code written, files in the page cache.",
    ),
    Case(
        "first-batch",
        "First batch of 64 after building, 2 threads",
        MS,
        _pair("time_first_batch"),
        (Bar("time", "stoker", at_most=500),),
        note="The training chain, in a fresh interpreter.",
    ),
)
