# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.detection_gpu``: ``stoker.torch.ops`` on CUDA tensors, compared with torchvision's kernels.

Both libraries alternate in one process, on the same tensors. A figure is the median time of a call over the rounds,
with a synchronization after each group of calls. The results are compared with those of Stoker's kernels on the CPU,
and two results with each other.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

from .cases.detection import BINS, CHANNELS, CLASSES, REGIONS, SCALE, THRESHOLD, boxes_of

GROUP = 10  # calls between two synchronizations
Call = Callable[[], Any]


def main() -> None:
    """Measure all operators and print a table."""
    import torch
    import torchvision

    from stoker.torch import ops

    parser = argparse.ArgumentParser(prog="python -m benchmarks.detection_gpu", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
    print(f"device      {torch.cuda.get_device_name()}, torchvision {torchvision.__version__}")
    cases: dict[str, tuple[Call, Call, Call]] = {}
    for count in (1000, 10_000):
        boxes, scores, labels = boxes_of(torch, count)
        on_gpu = [x.cuda() for x in (boxes, scores, labels)]
        cases[f"nms of {count} boxes"] = (
            lambda g=on_gpu: ops.nms(g[0], g[1], THRESHOLD),
            lambda g=on_gpu: torchvision.ops.nms(g[0], g[1], THRESHOLD),
            lambda b=boxes, s=scores: ops.nms(b, s, THRESHOLD),
        )
        cases[f"nms of {count} boxes of {CLASSES} labels"] = (
            lambda g=on_gpu: ops.batched_nms(*g, THRESHOLD),
            lambda g=on_gpu: torchvision.ops.batched_nms(*g, THRESHOLD),
            lambda b=boxes, s=scores, n=labels: ops.batched_nms(b, s, n, THRESHOLD),
        )
    cases |= _regions(torch, torchvision, ops)
    for name, (stoker, peer, on_cpu) in cases.items():
        same = torch.equal(stoker().cpu(), on_cpu())
        repeats = torch.equal(stoker(), stoker())
        ours, theirs = measure(torch, stoker, peer, rounds)
        print(
            f"{name:36} {ours * 1e3:8.3f} ms, torchvision {theirs * 1e3:8.3f}, ratio {ours / theirs:.2f}; bits of the "
            f"CPU: {same}, repeatable: {repeats}",
            flush=True,
        )


def _regions(torch: Any, torchvision: Any, ops: Any) -> dict[str, tuple[Call, Call, Call]]:
    """Return the cases of roi_align: calls of Stoker and torchvision on the GPU, and of Stoker on the CPU."""
    features = torch.rand(1, CHANNELS, 50, 68, generator=torch.Generator().manual_seed(0))
    rois = torch.cat([torch.zeros(REGIONS, 1), boxes_of(torch, REGIONS)[0]], 1)
    x, r = features.cuda(), rois.cuda()
    arguments = (BINS, SCALE, 2, True)
    gradient = torch.rand(REGIONS, CHANNELS, BINS, BINS, generator=torch.Generator().manual_seed(1))

    def backward(function: Any, maps: Any, boxes: Any, grad: Any) -> Call:
        maps = maps.clone().requires_grad_()
        pooled = function(maps, boxes, *arguments)
        return lambda: torch.autograd.grad(pooled, maps, grad, retain_graph=True)[0]

    last = x.contiguous(memory_format=torch.channels_last)
    peer = torchvision.ops.roi_align
    on_cpu = lambda: ops.roi_align(features, rois, *arguments)  # noqa: E731
    return {
        "roi_align": (lambda: ops.roi_align(x, r, *arguments), lambda: peer(x, r, *arguments), on_cpu),
        "roi_align, channels_last": (
            lambda: ops.roi_align(last, r, *arguments), lambda: peer(last, r, *arguments), on_cpu,
        ),
        "roi_align, gradient": (
            backward(ops.roi_align, x, r, gradient.cuda()), backward(peer, x, r, gradient.cuda()),
            backward(ops.roi_align, features, rois, gradient),
        ),
    }  # fmt: skip


def measure(torch: Any, stoker: Call, peer: Call, rounds: int) -> tuple[float, float]:
    """Return the median seconds of a call of each."""
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for call, times in zip((stoker, peer), found, strict=True):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(GROUP):
                call()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - start) / GROUP)
    return statistics.median(found[0][1:]), statistics.median(found[1][1:])


if __name__ == "__main__":
    main()
