# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.detection_gpu``: ``stoker.torch.ops`` on CUDA tensors and SSD300's chain, with their peers.

torchvision's CUDA kernels take turns with Stoker's in one process, on the same tensors. A figure is the median time of
a call over the rounds, with a synchronization after each group of calls. The results are compared with those of
Stoker's kernels on the CPU, and two results with each other. With ``--data``, a folder of JPEG files, the training
chain of SSD300 follows, next to the same one in DALI.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from .cases import detection as case
from .gpu_data import make_files
from .gpu_pipelines import consume, library

GROUP = 10  # calls between two synchronizations
BATCH = 64  # images of a batch of the chain
Call = Callable[[], Any]
Cases = dict[str, tuple[Call, Call | None, Call]]  # calls of Stoker and its peer on the GPU, and of Stoker on the CPU


def main() -> None:
    """Measure all operators and the chain, and print a line for each."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.detection_gpu", description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--data", type=Path, help="folder of JPEG files for the chain; by default it is left out")
    parser.add_argument("--files", type=int, default=1024, help="number of files to make of them")
    parser.add_argument("--work", type=Path, default=Path("/dev/shm/stoker-bench-gpu"), help="folder for the files")
    parser.add_argument("--dali", type=Path, help="folder to import nvidia.dali from, if it is not installed")
    parser.add_argument("--threads", type=int, default=min(8, len(os.sched_getaffinity(0))))
    parser.add_argument("--seconds", type=float, default=1.5, help="length of a round of the chain")
    parser.add_argument("--batch", type=int, default=BATCH, help="images of a batch of the chain")
    parser.add_argument("--depth", type=int, default=2, help="prefetched batches of the chain")
    parser.add_argument("--report", action="store_true", help="show which operators of Stoker's chain take the time")
    parser.add_argument("--chain", action="store_true", help="measure the chain alone")
    arguments = parser.parse_args()
    if arguments.dali:
        sys.path.insert(0, str(arguments.dali))
    import torch

    now = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {now} UTC")
    peer = _torchvision(torch)
    cases = {} if arguments.chain else _boxes(torch, peer) | _regions(torch, peer) | _warps(torch)
    for name, calls in cases.items():
        _print_case(torch, name, calls, arguments.rounds)
    if arguments.data:
        measure_chain(arguments)


def _torchvision(torch: Any) -> Any:
    """Return ``torchvision.ops`` if it has kernels for CUDA, else None."""
    try:
        import torchvision
    except (ImportError, RuntimeError) as error:
        print(f"torchvision cannot be imported ({error}): no peer")
        return None
    if not torch._C._dispatch_has_kernel_for_dispatch_key("torchvision::nms", "CUDA"):
        print(f"torchvision {torchvision.__version__} has no kernels for CUDA: no peer")
        return None
    print(f"torchvision {torchvision.__version__}")
    return torchvision.ops


def _boxes(torch: Any, peer: Any) -> Cases:
    from stoker.torch import ops

    cases: Cases = {}
    for count in (1000, 10_000):
        boxes, scores, labels = case.boxes_of(torch, count)
        plain, grouped = (boxes, scores, case.THRESHOLD), (boxes, scores, labels, case.THRESHOLD)
        for name, arguments in (("nms", plain), ("batched_nms", grouped)):
            on_gpu = [x.cuda() if isinstance(x, torch.Tensor) else x for x in arguments]
            cases[f"{name} of {count} boxes"] = (
                partial(getattr(ops, name), *on_gpu), peer and partial(getattr(peer, name), *on_gpu),
                partial(getattr(ops, name), *arguments),
            )  # fmt: skip
    return cases


def _regions(torch: Any, peer: Any) -> Cases:
    from stoker.torch import ops

    features = torch.rand(1, case.CHANNELS, 50, 68, generator=torch.Generator().manual_seed(0))
    rois = torch.cat([torch.zeros(case.REGIONS, 1), case.boxes_of(torch, case.REGIONS)[0]], 1)
    x, r = features.cuda(), rois.cuda()
    last = x.contiguous(memory_format=torch.channels_last)
    arguments = (case.BINS, case.SCALE, 2, True)
    on_cpu = partial(ops.roi_align, features, rois, *arguments)
    gradient = torch.rand(case.REGIONS, case.CHANNELS, case.BINS, case.BINS, generator=torch.Generator().manual_seed(1))

    def backward(module: Any, maps: Any, boxes: Any, grad: Any) -> Call:
        maps = maps.clone().requires_grad_()
        pooled = module.roi_align(maps, boxes, *arguments)
        return lambda: torch.autograd.grad(pooled, maps, grad, retain_graph=True)[0]

    return {
        "roi_align": (partial(ops.roi_align, x, r, *arguments), peer and partial(peer.roi_align, x, r, *arguments),
                      on_cpu),
        "roi_align, channels_last": (
            partial(ops.roi_align, last, r, *arguments), peer and partial(peer.roi_align, last, r, *arguments), on_cpu,
        ),
        "roi_align, gradient": (
            backward(ops, x, r, gradient.cuda()), peer and backward(peer, x, r, gradient.cuda()),
            backward(ops, features, rois, gradient),
        ),
    }  # fmt: skip


def _warps(torch: Any) -> Cases:
    """Return the cases of warp_affine, for which torchvision has no kernel."""
    from stoker.torch import ops

    images = torch.randint(0, 256, (16, 3, 720, 1280), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    matrices = torch.tensor([case.MATRIX] * 16)
    cases: Cases = {}
    for name, form in (("", torch.contiguous_format), (", channels_last", torch.channels_last)):
        for kind, x in (("uint8", images), ("float32", images.float())):
            own = x.contiguous(memory_format=form)
            call = partial(ops.warp_affine, own.cuda(), matrices.cuda())
            cases[f"warp_affine of 16, 1280x720 {kind}{name}"] = (call, None, partial(ops.warp_affine, own, matrices))
    maps = images[:2].float().cuda().requires_grad_()
    warped = ops.warp_affine(maps, matrices[:2].cuda())
    gradient = torch.rand(2, 3, 720, 1280, generator=torch.Generator().manual_seed(1))
    plain, on_gpu = images[:2].float().requires_grad_(), gradient.cuda()
    cases["warp_affine of 2, gradient"] = (
        lambda: torch.autograd.grad(warped, maps, on_gpu, retain_graph=True)[0], None,
        lambda: torch.autograd.grad(ops.warp_affine(plain, matrices[:2]), plain, gradient)[0],
    )  # fmt: skip
    return cases


def _print_case(torch: Any, name: str, calls: tuple[Call, Call | None, Call], rounds: int) -> None:
    stoker, peer, on_cpu = calls
    same = torch.equal(stoker().cpu(), on_cpu())
    repeats = torch.equal(stoker(), stoker())
    ours, *theirs = measure(torch, [stoker, peer] if peer else [stoker], rounds)
    compared = f", torchvision {theirs[0] * 1e3:8.3f}, ratio {ours / theirs[0]:.2f}" if theirs else ""
    print(f"{name:44} {ours * 1e3:8.3f} ms{compared}; bits of the CPU: {same}, repeatable: {repeats}", flush=True)


def measure(torch: Any, calls: list[Call], rounds: int) -> list[float]:
    """Return the median seconds of a call of each."""
    found: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, times in zip(calls, found, strict=True):
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(GROUP):
                call()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - start) / GROUP)
    return [statistics.median(times[1:]) for times in found]


def measure_chain(arguments: argparse.Namespace, rounds: int = 5) -> None:
    """Compare SSD300's training chain on the GPU with DALI's, with `box_encoder` on the CPU and on the GPU."""
    files = make_files(arguments.data, arguments.work, arguments.files)
    with tempfile.TemporaryDirectory() as folder:
        annotations = case.write_annotations(files, folder)
        pipelines = {}
        for name in ("stoker", "dali"):
            try:
                for encoder in ("cpu", "gpu"):
                    pipelines[name, encoder] = case.make_ssd_chain(
                        library(name), annotations, "gpu", encoder=encoder, batch_size=arguments.batch,
                        num_threads=arguments.threads, device_id=0, prefetch_queue_depth=arguments.depth,
                    )  # fmt: skip
            except ImportError as error:
                print(f"SSD300's chain: no {name} ({error})", flush=True)
        rates = _chain_rates(pipelines, arguments, rounds)
        for (name, encoder), pipeline in pipelines.items() if arguments.report else ():
            if name == "stoker":
                print(f"Stoker's chain, encoder on the {encoder}:\n{pipeline.report()}")
    medians = {key: statistics.median(rate for rate, _ in found) for key, found in rates.items()}
    for (name, encoder), rate in medians.items():
        cpu_us = statistics.median(us for _, us in rates[name, encoder])
        print(
            f"SSD300's chain, {arguments.threads} threads, {name}, encoder on the {encoder}: {rate:,.0f} images/s, "
            f"{cpu_us:.0f} us of the process's CPU time an image"
        )
    best = [max(medians[name, "cpu"], medians[name, "gpu"]) for name in ("stoker", "dali") if (name, "cpu") in medians]
    if len(best) > 1:
        print(f"SSD300's chain, the faster form of each: ratio {best[0] / best[1]:.2f}", flush=True)


def _chain_rates(
    pipelines: dict[tuple[str, str], Any], arguments: argparse.Namespace, rounds: int
) -> dict[tuple[str, str], list[tuple[float, float]]]:
    """Return the results of :func:`_images_per_second` for each pipeline; the pipelines take turns."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {key: [] for key in pipelines}
    for turn in range(rounds):
        for key in pipelines if turn % 2 == 0 else reversed(pipelines):
            found[key].append(_images_per_second(pipelines[key], arguments.seconds, arguments.batch))
    return found


def _images_per_second(pipeline: Any, seconds: float, batch: int) -> tuple[float, float]:
    """Return the rate, and the microseconds of CPU time of all threads for an image."""
    import torch

    total = torch.zeros((), dtype=torch.float64, device="cuda")
    for _ in range(4):  # batches that were prefetched
        consume(pipeline.run(), total)
    torch.cuda.synchronize()
    batches, start, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        consume(pipeline.run(), total)
        batches += 1
    torch.cuda.synchronize()
    images = batches * batch
    return images / (time.perf_counter() - start), (time.process_time() - cpu) / images * 1e6


if __name__ == "__main__":
    main()
