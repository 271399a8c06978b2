# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.augmentation_gpu``: bottlenecks of ``benchmarks.gpu``'s augmentation.

For several numbers of threads and prefetched batches: the rate, the processor time per batch on all threads and on the
caller's, and the threads' time per step. Then the share of time in which the GPU runs kernels and copies, alone and
overlapping, from the driver's trace. With ``--null`` the device is host memory and kernels do nothing: this measures
the host's share on a machine without a GPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .gpu_pipelines import BATCH, DEPTH, augment, consume

SHAPE = (BATCH, 375, 500, 3)
WARM = 40


def main() -> None:
    """Run the measurements of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.augmentation_gpu", description=__doc__.split("\n")[0])
    parser.add_argument("--null", action="store_true", help="no GPU: the host's share only")
    parser.add_argument("--threads", type=int, nargs="*", default=[2, 4, 8, 16])
    parser.add_argument("--depths", type=int, nargs="*", default=[DEPTH])
    parser.add_argument("--batches", type=int, default=400, help="batches per rate")
    arguments = parser.parse_args()
    images, use = _null() if arguments.null else _gpu()
    for threads in arguments.threads:
        for depth in arguments.depths:
            measure(images, use, threads, depth, arguments.batches)
    if not arguments.null:
        trace(images, use, arguments.threads[-1], arguments.depths[-1])


def measure(images: Any, use: Callable[[Any], None], threads: int, depth: int, batches: int, turns: int = 3) -> None:
    """Return the best of several rounds."""
    pipeline = augment(images, threads, depth)
    for _ in range(WARM):
        use(pipeline.run())
    found = []
    for _ in range(turns):
        start, all_threads, caller, inside = time.perf_counter(), time.process_time(), time.thread_time(), 0.0
        for _ in range(batches // turns):
            asked = time.perf_counter()
            outputs = pipeline.run()
            inside += time.perf_counter() - asked
            use(outputs)
        ends = (time.perf_counter() - start, time.process_time() - all_threads, time.thread_time() - caller, inside)
        found.append([1e6 * t / (batches // turns) for t in ends])
    wall, processor, caller, inside = min(found)
    print(f"{threads} threads, {depth} prefetched: {1e6 * BATCH / wall:,.0f} images/s; per batch {wall:.0f} us, "
          f"{inside:.0f} of them in `run`; processor {processor:.0f} us, {caller:.0f} by the caller")  # fmt: skip
    print(f"  {pipeline.report()}".replace("\n", "\n  "), flush=True)
    pipeline.close()


def trace(images: Any, use: Callable[[Any], None], threads: int, depth: int, batches: int = 40) -> None:
    """Print the shares of time that the GPU spends in each activity."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    pipeline = augment(images, threads, depth)
    for _ in range(WARM):
        use(pipeline.run())
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as traced:
        for _ in range(batches):
            use(pipeline.run())
        torch.cuda.synchronize()
    pipeline.close()
    spans: dict[str, list[tuple[float, float]]] = {}
    for event in traced.events():
        if event.device_type == torch.autograd.DeviceType.CUDA:
            name = event.name if event.name.startswith("stoker") else event.name.split(" (")[0][:40]
            spans.setdefault(name, []).append((event.time_range.start, event.time_range.end))
    kernels = [s for name, own in spans.items() if name.startswith("stoker") for s in own]
    start, end = min(s for s, _ in kernels), max(e for _, e in kernels)
    print(
        f"traced: {(end - start) / batches:.0f} us per batch; stoker's kernels run in "
        f"{_covered(kernels) / batches:.0f} of them, {sum(e - s for s, e in kernels) / batches:.0f} one by one"
    )
    for name, own in sorted(spans.items(), key=lambda item: -sum(e - s for s, e in item[1])):
        print(f"  {name:<40} {sum(e - s for s, e in own) / batches:8.1f} us per batch, {len(own) / batches:.1f} times")


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    covered, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        covered += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return covered


def _gpu() -> tuple[Any, Callable[[Any], None]]:
    import torch

    total = torch.zeros((), dtype=torch.float64, device="cuda")
    return torch.randint(0, 256, SHAPE, dtype=torch.uint8, device="cuda"), lambda outputs: consume(outputs, total)


class _Interface:
    """Host array with the interface of an array on the null device."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array, self.ndim = array, array.ndim

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        a = self.array
        return {"shape": a.shape, "typestr": a.dtype.str, "data": (a.ctypes.data, False), "version": 3}


def _null() -> tuple[Any, Callable[[Any], None]]:
    from stoker.device.gpu import Gpu
    from stoker.native import _native

    class Null(Gpu):
        def compiled(self, source: str) -> bytes:
            return b""  # any kernel name gives an empty kernel

    Gpu.open = staticmethod(lambda number, memory_limit=None: Null(_native.gpu.open_null(), 1 << 40))  # type: ignore[method-assign]
    return _Interface(np.zeros(SHAPE, np.uint8)), lambda outputs: None


if __name__ == "__main__":
    main()
