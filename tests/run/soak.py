# SPDX-License-Identifier: Apache-2.0
"""Run pipelines for a long time and watch the memory: ``python -m tests.run.soak --seconds 3600 FILES``.

The exit status is 1 if the process has grown: the median of the last quarter of the samples exceeds that of the second.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from stoker import DataError, fn, pipeline_def
from tests.run.pipelines import decoding, training

MIB = 1 << 20
ALLOWED_MIB = 4.0  # memory that allocators keep in addition to what is in use
PAUSE_S = 0.05


@pipeline_def(batch_size=8, num_threads=2, seed=3)
def calling(files: list[str]) -> Any:
    jpegs, labels = fn.readers.file(files=files, random_shuffle=True)
    images = fn.python_function(fn.decoders.image(jpegs), function=lambda image: image[::2, ::2])
    return images, labels


def endless(files: list[str], workload: str) -> Iterator[None]:
    """Yield one batch per step. Now and then create a new pipeline; some batches fail."""
    define: Callable[..., Any] = {"decoding": decoding, "python": calling}.get(workload, training)
    for turn in itertools.count():
        broken = [*files[:-1], "no such file"] if turn % 2 else files
        pipe = define(broken, batch_size=8)
        if workload == "loader":
            yield from loop(pipe)
        for _ in range(200):
            with contextlib.suppress(DataError):
                pipe.run()
            yield
        pipe.close()


def loop(pipe: Any) -> Iterator[None]:
    from stoker.torch import Loader

    loader = Loader(pipe)
    for _ in range(20):
        batches = iter(loader)
        while True:
            try:
                next(batches)
            except DataError:
                continue
            except StopIteration:
                break
            yield


def resident_mib() -> float:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--workload", choices=["training", "decoding", "loader", "python"], default="training")
    arguments = parser.parse_args()
    steps = endless(arguments.files, arguments.workload)
    next(steps)  # imports must not count in the samples
    start = printed = sampled = time.monotonic()
    samples: list[float] = []
    for batches, _ in enumerate(steps):
        now = time.monotonic()
        if now - sampled >= PAUSE_S:
            samples.append(resident_mib())
            sampled = now
        if now - printed >= 10:
            print(f"{now - start:6.0f} s  {batches:8} batches  {samples[-1]:8.1f} MiB", flush=True)
            printed = now
        if now - start >= arguments.seconds:
            break
    quarter = len(samples) // 4
    if not quarter:
        print("too short for a result")
        return 1
    before, after = statistics.median(samples[quarter : 2 * quarter]), statistics.median(samples[-quarter:])
    print(f"{arguments.workload}: {before:.1f} MiB, then {after:.1f} MiB")
    return int(after - before > ALLOWED_MIB)


if __name__ == "__main__":
    sys.exit(main())
