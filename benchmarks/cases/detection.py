# SPDX-License-Identifier: Apache-2.0
"""Suppression of boxes and pooling of regions on tensors, one core; and the cost of a function on pixels in a chain."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import Bar, Case, Contender, Loop, Unit
from benchmarks.data import Data

ORDER = 46
MS_PER_CALL = Unit("ms/call", lambda seconds: 1e3 * seconds)
THRESHOLD = 0.5
CLASSES = 80
REGIONS, CHANNELS, BINS, SCALE = 1000, 256, 7, 1 / 16


def _boxes(torch: Any, count: int) -> tuple[Any, Any, Any]:
    """Return boxes spread over 800 x 800 pixels, their scores, and labels."""
    rng = np.random.default_rng(0)
    corner = rng.uniform(0, 800, (count, 2))
    boxes = np.concatenate([corner, corner + rng.uniform(10, 110, (count, 2))], 1).astype(np.float32)
    scores, labels = rng.random(count, np.float32), rng.integers(0, CLASSES, count)
    return torch.from_numpy(boxes), torch.from_numpy(scores), torch.from_numpy(labels)


def _loop(call: Callable[[], Any]) -> Loop:
    def step() -> tuple[int, float]:
        return 1, float(call().reshape(-1)[-1])

    return Loop(step)


def run_nms(data: Data, *, count: int) -> Loop:
    """Keep the boxes that no better box overlaps."""
    import torch

    from stoker.torch import ops

    boxes, scores, _ = _boxes(torch, count)
    return _loop(lambda: ops.nms(boxes, scores, THRESHOLD))


def run_batched_nms(data: Data, *, count: int) -> Loop:
    """Keep the boxes that no better box of the same label overlaps."""
    import torch

    from stoker.torch import ops

    boxes, scores, labels = _boxes(torch, count)
    return _loop(lambda: ops.batched_nms(boxes, scores, labels, THRESHOLD))


def _regions(torch: Any) -> tuple[Any, Any]:
    features = torch.rand(1, CHANNELS, 50, 68, generator=torch.Generator().manual_seed(0))
    boxes, _, _ = _boxes(torch, REGIONS)
    return features, torch.cat([torch.zeros(REGIONS, 1), boxes], 1)


def run_roi_align(data: Data) -> Loop:
    """Pool 1000 regions of 256 channels into 7 x 7 bins of 2 x 2 samples."""
    import torch

    from stoker.torch import ops

    features, regions = _regions(torch)
    return _loop(lambda: ops.roi_align(features, regions, BINS, SCALE, 2, True))


def run_roi_align_backward(data: Data) -> Loop:
    """Compute the gradient of these features."""
    import torch

    from stoker.torch import ops

    features, regions = _regions(torch)
    pooled = ops.roi_align(features.requires_grad_(), regions, BINS, SCALE, 2, True)
    gradient = torch.rand(pooled.shape, generator=torch.Generator().manual_seed(1))
    return _loop(lambda: torch.autograd.grad(pooled, features, gradient, retain_graph=True)[0])


def run_chain(data: Data, *, fused: bool) -> Loop:
    """Resize, crop and normalize 16 images, with or without a function on pixels between."""
    import stoker
    from stoker import fn, pipeline_def, types

    @stoker.fuse(name="benchmark_gain")
    def gain(p, strength: float = 0.5):  # type: ignore[no-untyped-def]
        return p.value * (1 - strength * 0.25)

    images = [np.random.default_rng(i).integers(0, 256, (375, 500, 3), dtype=np.uint8) for i in range(16)]

    @pipeline_def(batch_size=16, num_threads=1)
    def chain() -> Any:
        x = fn.external_source(lambda: images, dtype=types.UINT8, ndim=3, layout="HWC", no_copy=True)
        x = fn.resize(x, size=(224, 224))
        x = gain(x, strength=fn.random.uniform(range=(0, 1))) if fused else x
        return fn.crop_mirror_normalize(x, mean=[123.0] * 3, std=[58.0] * 3)

    pipe = chain()
    return _loop(lambda: np.asarray(pipe.run()[0][0]))


def _absolute(name: str, title: str, function: str, limit: float, **options: Any) -> Case:
    bar = Bar(f"at most {limit:g} ms", "stoker", at_most=limit)
    contender = Contender("stoker", function, options, cores=1)
    return Case(f"detection-{name}", f"Detection: {title}", MS_PER_CALL, (contender,), (bar,), _NOTE, seconds=0.5)


_NOTE = "One core, tensors of float32 on the CPU. The results have the bits of torchvision's CPU kernels."

CASES = (
    _absolute("nms-1000", "nms of 1,000 boxes", "run_nms", 0.1, count=1000),
    _absolute("nms-10000", "nms of 10,000 boxes", "run_nms", 5.0, count=10_000),
    _absolute("batched-nms", "batched_nms of 10,000 boxes of 80 labels", "run_batched_nms", 3.0, count=10_000),
    _absolute("roi-align", "roi_align, 1000 regions of 256 x 7 x 7", "run_roi_align", 35.0),
    _absolute("roi-align-backward", "its gradient", "run_roi_align_backward", 22.0),
    Case(
        "fuse", "A function on pixels in a chain", MS_PER_CALL,
        (
            Contender("with the function", "run_chain", {"fused": True}, cores=1),
            Contender("without", "run_chain", {"fused": False}, cores=1),
        ),
        (Bar("time of the chain without it", "with the function", ("without",), at_most=1.1, goal=1.0),),
        "16 images of 500 x 375: resize to 224 x 224, a gain for each row, normalization.", seconds=0.5,
    ),
)  # fmt: skip
