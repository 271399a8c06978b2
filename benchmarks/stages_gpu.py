# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.stages_gpu``: what the kernels of stages take per image, from the driver's own trace of them.

Three pipelines on images that are random bytes: ``resize`` (250 to 300 pixels a side to 224, flipped, normalised to
float16 CHW; uploaded), ``normalise`` (a window of 224 without resizing; uploaded) and ``augmentation``, that of
``benchmarks.gpu``. ``docs/gpu.md`` has the table that this fills.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from .gpu import BATCH, MEAN, STD, make_augmentation

BATCHES = 12


def main() -> None:
    """Measure every pipeline, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stages_gpu", description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=[*PIPELINES], help="pipelines")
    parser.add_argument("--batches", type=int, default=BATCHES, help="how many are measured")
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
    pipeline.close()
    launches: dict[str, list[float]] = defaultdict(list)
    for event in trace.events():
        if event.device_type == torch.autograd.DeviceType.CUDA and event.name.startswith("stoker"):
            launches[event.name].append(event.device_time_total / BATCH)
    total = 0.0
    for kernel, times in launches.items():
        # Of a kernel that runs for several stages, each stage by itself.
        stages = round(len(times) / batches) or 1
        for s in range(stages):
            one = times[s::stages]
            total += statistics.fmean(one)
            which = f"{kernel} {s + 1} of {stages}" if stages > 1 else kernel
            print(f"  {which:<28} {statistics.fmean(one):.3f} us/image ({min(one):.3f} .. {max(one):.3f})")
    print(f"{name:<12} {total:.3f} us/image", flush=True)


def resize() -> Any:
    """Resize, flip and normalise uploaded images."""
    return _uploaded(resized=True)


def normalise() -> Any:
    """A window of uploaded images, flipped and normalised."""
    return _uploaded(resized=False)


def augmentation() -> Any:
    """That of ``benchmarks.gpu``, one batch at a time."""
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
