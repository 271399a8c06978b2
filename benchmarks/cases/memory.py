# SPDX-License-Identifier: Apache-2.0
"""Memory in the steady state: resident memory above the import's, and the number of allocations."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from benchmarks.allocations import counted
from benchmarks.case import COUNT, MIB, Bar, Case, Contender, Sample
from benchmarks.cases.training_chain import BATCH, make_pipeline
from benchmarks.data import Data
from benchmarks.library import DALI, STOKER, load

ORDER = 80
THREADS = 2
PREFETCH = 2
_WARM_BATCHES, _BATCHES = 10, 100
_BATCH_MIB = BATCH * 3 * 224 * 224 * 4 / 2**20
# Allowance for decoding and resizing: decoded windows, coefficients, tables, compressed files.
_ARENA_MIB = 16 * (THREADS + 1)


def measure_resident(data: Data, *, library: str) -> Sample:
    """Return the MiB that building and running the training chain adds to the memory after the import."""
    load(library)
    before = _resident_mib()
    pipeline = make_pipeline(library, data, threads=THREADS)

    def read() -> float:
        _take(pipeline, _BATCHES)
        return _resident_mib() - before

    return Sample(read)


def count_large_allocations(data: Data, *, library: str) -> Sample:
    """Return the allocations of 4 KiB and more during 100 batches, each dropped before the next one."""
    pipeline = make_pipeline(library, data, threads=THREADS)
    _take(pipeline, _WARM_BATCHES)

    def read() -> float:
        before = counted()
        _take(pipeline, _BATCHES)
        return float(counted() - before)

    return Sample(read)


def _take(pipeline: Any, count: int) -> None:
    for _ in range(count):
        pipeline.run()


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _pair(function: str, *, count_allocations: bool = False) -> tuple[Contender, ...]:
    return (
        Contender("stoker", function, {"library": STOKER}, count_allocations=count_allocations),
        Contender("DALI", function, {"library": DALI}, "peers", count_allocations=count_allocations),
    )


CASES = (
    Case(
        "memory",
        "Memory of the training chain above the import, 2 threads",
        MIB,
        _pair("measure_resident"),
        (Bar("resident memory", "stoker", at_most=round((PREFETCH + 2) * _BATCH_MIB + _ARENA_MIB)),),
        note=f"Batches of 64 are {_BATCH_MIB:.0f} MiB each. The bar is prefetch + 2 = {PREFETCH + 2} of them and "
        f"{_ARENA_MIB} MiB for arenas, after 100 batches.",
    ),
    Case(
        "allocations",
        "Allocations of 4 KiB and more in 100 batches, 2 threads",
        COUNT,
        _pair("count_large_allocations", count_allocations=True),
        (Bar("allocations", "stoker", at_most=0),),
        note="After 10 batches. Counted on all threads, by a library that wraps the C library's allocator.",
    ),
)
