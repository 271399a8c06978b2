# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.gpu_host``: the host's share of the GPU path, on a machine without a GPU.

The chain of ``benchmarks.gpu`` runs on the null device with empty kernels. It therefore measures reading, parsing,
describing and planning launches, and the null device's own copy of uploads. Later epochs need results of kernels and
are not measured. The figures are processor time per image, and the system's share of it: the minimum of the rounds, in
alternation with two lower bounds. These read the same files on one thread, into as much memory as the batches have, and
into a small reused buffer.
"""

from __future__ import annotations

import argparse
import functools
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from .gpu_data import add_arguments, make_files
from .gpu_pipelines import BATCH, CHAIN, DECODE, INDEX_BYTES, make_pipeline
from .planes_gpu import in_form, step_times

ROUNDS = 5


def main() -> int:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_host", description=__doc__.split("\n")[0])
    add_arguments(parser, seconds=1.0)
    parser.add_argument("--threads", type=int, default=2, help="worker threads")
    arguments = parser.parse_args()
    files = make_files(arguments.data, arguments.work, arguments.files)
    _without_a_gpu()
    pipelines = {
        "chain": make_pipeline("stoker", CHAIN, files, "gpu", arguments.threads, 5),
        "chain, images in pixels": in_form("pixels", files, arguments.threads, 5),
        "chain, index asked for": make_pipeline("stoker", CHAIN, files, "gpu", arguments.threads, 5, index=INDEX_BYTES),
        "decoding to RGB": make_pipeline("stoker", DECODE, files, "gpu", arguments.threads, 5),
    }
    measures: dict[str, Callable[[], float]] = {
        label: functools.partial(_batches, pipeline, arguments.seconds) for label, pipeline in pipelines.items()
    }
    for label, megabytes in (("floor, 160 MiB", 160), ("floor, 4 MiB", 4)):
        measures[label] = functools.partial(_floor, files, memoryview(bytearray(megabytes << 20)))
    found: dict[str, list[tuple[float, float]]] = {label: [] for label in measures}
    for _ in range(ROUNDS):
        for label, measure in measures.items():
            before = os.times()
            rows = measure()
            after = os.times()
            found[label].append((1e6 * (after.user - before.user) / rows, 1e6 * (after.system - before.system) / rows))
    print(f"host        {arguments.threads} threads, {len(os.sched_getaffinity(0))} cores, "
          f"{time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())} [us of processor time per image]")  # fmt: skip
    for label, measured in found.items():
        user, system = min(measured, key=sum)
        print(f"  {label:<28} {user + system:6.1f}   {user:5.1f} of the program, {system:5.1f} of the system")
    for label, pipeline in pipelines.items():
        print(f"  {label}: a thread's time in steps: {step_times(pipeline)}")
        pipeline.close()
    return 0


def _without_a_gpu() -> None:
    from stoker.device.gpu import Gpu
    from stoker.native import _native

    class Idle(Gpu):
        def compiled(self, source: str) -> bytes:
            return b""

    Gpu.open = staticmethod(lambda number, memory_limit=None: Idle(_native.gpu.open_null(), 2**63))  # type: ignore[method-assign]


def _batches(pipeline: Any, seconds: float) -> float:
    rows, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        pipeline.run()
        rows += BATCH
    return rows


def _floor(files: list[str], room: memoryview) -> float:
    at = 0
    for path in files:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        size = os.fstat(descriptor).st_size
        at = 0 if at + size > len(room) else at
        os.preadv(descriptor, [room[at : at + size]], 0)
        at += size
        os.close(descriptor)
    return len(files)


if __name__ == "__main__":
    sys.exit(main())
