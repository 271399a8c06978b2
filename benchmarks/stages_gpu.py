# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.stages_gpu``: time of stage kernels per image, from the driver's trace.

Three pipelines on random images: ``resize`` (250 to 300 pixels a side to 224, flipped, normalised to float16 CHW;
uploaded), ``normalise`` (a window of 224 without resizing; uploaded) and ``augmentation``, that of ``benchmarks.gpu``.
``docs/internals/gpu.md`` has the resulting table.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .gpu_pipelines import BATCH, MEAN, STD, make_augmentation

BATCHES = 12
IDLE = 0.02  # seconds of an idle device, longer than any gap within a batch


def main() -> None:
    """Measure every pipeline, or the named ones."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stages_gpu", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=[*PIPELINES], help="pipelines")
    parser.add_argument("--batches", type=int, default=BATCHES, help="number of measured batches")
    arguments = parser.parse_args()
    for name in arguments.names:
        measure(name, PIPELINES[name](), arguments.batches)


def measure(name: str, pipeline: Any, batches: int) -> None:
    """Print the mean time per image of each kernel."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    for _ in range(6):
        pipeline.run()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as trace:
        for _ in range(batches):
            pipeline.run()
            torch.cuda.synchronize()
            time.sleep(2 * IDLE)  # the next batch is computed during the pause, then the device is idle
    pipeline.close()
    found = [
        Launch(event.time_range.start, event.device_time_total, event.name)
        for event in trace.events()
        if event.device_type == torch.autograd.DeviceType.CUDA
    ]
    kernels = [[one for one in batch if one.name.startswith("stoker")] for batch in by_batch(found)]
    for which, times in by_stage(kernels).items():
        each = [us / BATCH for us in times]
        print(f"  {which:<40} {statistics.fmean(each):.3f} us/image ({min(each):.3f} .. {max(each):.3f})")
    total = statistics.fmean(sum(one.us for one in batch) / BATCH for batch in kernels)
    print(f"{name:<12} {total:.3f} us/image", flush=True)


class Launch(NamedTuple):
    """Kernel or copy on the device."""

    start: float  # us
    us: float
    name: str


def by_batch(launches: Iterable[Launch]) -> list[list[Launch]]:
    """Return launches in order of time, split where the device was idle for ``IDLE`` seconds."""
    batches: list[list[Launch]] = []
    end = float("-inf")
    for one in sorted(launches):
        if one.start - end > 1e6 * IDLE:
            batches.append([])
        batches[-1].append(one)
        end = max(end, one.start + one.us)
    return batches


def by_stage(batches: Sequence[Sequence[Launch]]) -> dict[str, list[float]]:
    """Return the times of each kernel, per stage if several stages use it.

    The position of a launch among its kernel's launches in a batch identifies its stage. Batches with an unusual number
    of launches are summed separately.
    """
    times: dict[str, list[float]] = {}
    for name in dict.fromkeys(one.name for batch in batches for one in batch):
        of_batches = [[one.us for one in batch if one.name == name] for batch in batches]
        usual = statistics.mode(len(of_batch) for of_batch in of_batches if of_batch)
        for of_batch in of_batches:
            if len(of_batch) == usual:
                for s, us in enumerate(of_batch):
                    times.setdefault(f"{name} {s + 1} of {usual}" if usual > 1 else name, []).append(us)
            elif of_batch:
                times.setdefault(f"{name}, all of {len(of_batch)}", []).append(sum(of_batch))
    return times


def resize() -> Any:
    """Resize, flip and normalise uploaded images."""
    return _uploaded(resized=True)


def normalise() -> Any:
    """Crop a window of uploaded images, flip and normalise it."""
    return _uploaded(resized=False)


def augmentation() -> Any:
    """Run the augmentation of ``benchmarks.gpu``, one batch at a time."""
    return make_augmentation(depth=1)


def _uploaded(resized: bool) -> Any:
    from stoker import fn, pipeline_def, types

    rng = np.random.default_rng(1)
    sizes = rng.integers(250, 301, (BATCH, 2)) if resized else np.full((BATCH, 2), 224)
    images = [rng.integers(0, 256, (int(h), int(w), 3), dtype=np.uint8) for h, w in sizes]

    @pipeline_def(batch_size=BATCH, num_threads=8, device_id=0, seed=7, prefetch_queue_depth=1)
    def define() -> Any:
        x = fn.external_source(source=lambda i: images, layout="HWC").gpu()
        if resized:
            x = fn.resize(x, resize_x=224, resize_y=224)
        return fn.crop_mirror_normalize(
            x, mirror=fn.random.coin_flip(), mean=MEAN, std=STD, dtype=types.FLOAT16, output_layout="CHW"
        )

    return define()


PIPELINES: dict[str, Callable[[], Any]] = {"resize": resize, "normalise": normalise, "augmentation": augmentation}


if __name__ == "__main__":
    main()
