# SPDX-License-Identifier: Apache-2.0
"""Time of handing a batch to a framework: ``python -m benchmarks.hand_over torch``, in the framework's environment.

The batch is 64 images of 3x224x224 float32 (38.5 MB) with labels. The bar is for the call that a training loop makes:
the time of ``next()`` on the loader while a finished batch waits. It has the delivery by the engine, which starts the
next batch, and the making of the framework's arrays, with cold caches: with the loader as it is by default, with
``background=True``, and with ``background=False``. In the first two a thread of the loop has done all of this before,
by default from the ninth batch on. Before them stands the time of
``next()`` on an iterator that has nothing to do, which is the cost of the measurement. The last figure is the making of
the arrays alone, of one batch again and again while the engine is idle.
"""

from __future__ import annotations

import importlib
import itertools
import statistics
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from stoker import fn, pipeline_def, types

BAR_US = 50.0
_FILL_S = 0.05  # in which the engine finishes a batch
_IDLE_S = 0.5  # in which it fills its queue
_FIRST, _WARM = 5, 100  # calls that are not counted


@pipeline_def(batch_size=64, num_threads=1, device_id=None, seed=3)
def batches() -> Any:
    """Return images and labels that cost little to make."""
    images = fn.constant(fdata=[0.5], shape=[3, 224, 224])
    return fn.copy(images), fn.random.uniform(range=(0.0, 9.0), dtype=types.INT32)


@dataclass(frozen=True)
class HandOver:
    """Microseconds of handing over one batch: the least, the median and the 90th percentile."""

    least: float
    median: float
    p90: float

    def __str__(self) -> str:
        return f"{self.median:.1f} us (least {self.least:.1f}, p90 {self.p90:.1f})"


def summary(times: list[float]) -> HandOver:
    return HandOver(min(times), statistics.median(times), statistics.quantiles(times, n=10)[-1])


def measure_calls(loader: Any, count: int = 200) -> HandOver:
    """Return the times of ``next()`` on a loader while a finished batch waits."""
    batches, found = iter(loader), []
    for _ in range(count + _FIRST):
        time.sleep(_FILL_S)
        start = time.perf_counter()
        batch = next(batches)
        found.append((time.perf_counter() - start) * 1e6)
        del batch
    return summary(found[_FIRST:])


def measure_nothing() -> HandOver:
    """Return the times of ``next()`` on an iterator without work."""
    return measure_calls(itertools.repeat(None))


def measure_arrays(loader: Any, count: int = 2000) -> HandOver:
    """Return the times of making the framework's arrays of one delivered batch."""
    delivered, found = loader.pipeline.next("go_on"), []
    time.sleep(_IDLE_S)
    for _ in range(count + _WARM):
        start = time.perf_counter()
        batch = loader._named(loader._arrays(delivered, loader._plan))
        found.append((time.perf_counter() - start) * 1e6)
        del batch
    return summary(found[_WARM:])


def main() -> None:
    name = sys.argv[1]
    if name == "mxnet":
        import numpy

        numpy.bool = numpy.bool_  # MXNet uses this name, which NumPy 1.24 removed
    print(f"nothing, next(): {measure_nothing()}")
    new_loader = importlib.import_module(f"stoker.{name}").Loader
    with closing(new_loader(batches())) as loader:
        report(f"{name}, next()", measure_calls(loader))
    for background in (True, False):
        with closing(new_loader(batches(), background=background)) as loader:
            report(f"{name}, next() with background={background}", measure_calls(loader))
    with closing(new_loader(batches())) as loader:
        print(f"{name}, arrays alone: {measure_arrays(loader)}")


def report(name: str, calls: HandOver) -> None:
    print(f"{name}: {calls}; bar {BAR_US:.0f}: {'met' if calls.median <= BAR_US else 'missed'}")


if __name__ == "__main__":
    main()
