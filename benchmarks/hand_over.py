# SPDX-License-Identifier: Apache-2.0
"""Time of handing a batch to a framework: ``python -m benchmarks.hand_over torch``, in the framework's environment.

The time is that of the loader's own part: making the framework's arrays of a batch that the engine has delivered. The
batch is 64 images of 3x224x224 float32 (38.5 MB) with labels. It is handed over again and again while the engine is
idle, so the processor's caches are warm.
"""

from __future__ import annotations

import importlib
import statistics
import sys
import time
from dataclasses import dataclass
from typing import Any

from stoker import fn, pipeline_def, types

BAR_US = 50.0
_IDLE_S = 0.5  # in which the engine fills its queue
_WARM = 100


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


def measure(loader_type: Any, count: int = 2000) -> HandOver:
    """Return the times of handing over a batch `count` times, after some that warm up."""
    loader = loader_type(batches())
    found = []
    try:
        delivered = loader.pipeline.next("go_on")
        time.sleep(_IDLE_S)
        for _ in range(count + _WARM):
            start = time.perf_counter()
            batch = loader._named(loader._arrays(delivered, loader._plan))
            found.append((time.perf_counter() - start) * 1e6)
            del batch
    finally:
        loader.close()
    times = found[_WARM:]
    return HandOver(min(times), statistics.median(times), statistics.quantiles(times, n=10)[-1])


def main() -> None:
    name = sys.argv[1]
    if name == "mxnet":
        import numpy

        numpy.bool = numpy.bool_  # MXNet uses this name, which NumPy 1.24 removed
    found = measure(importlib.import_module(f"stoker.{name}").Loader)
    print(
        f"{name}: {found.median:.1f} us a batch (least {found.least:.1f}, p90 {found.p90:.1f}); bar {BAR_US:.0f}: "
        f"{'met' if found.median <= BAR_US else 'missed'}"
    )


if __name__ == "__main__":
    main()
