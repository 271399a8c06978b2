# SPDX-License-Identifier: Apache-2.0
"""``python -m benchmarks.serving --data PHOTOGRAPHS``: latency of requests that an endpoint answers.

A request is a JPEG file's bytes, its result the normalised 224x224 image as float32 CHW. Every request is another
file than the one before. On the CPU, the measure is the time of decoding and resizing alone: the same steps in batches
on one thread. On a GPU, the peer is torchvision's decoder on the GPU (nvJPEG) with torch's resizing and arithmetic; all
clocks stop when the result is complete in the GPU's memory. Contenders alternate.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stoker import fn, pipeline_def, types
from stoker.serve import Endpoint

SIZE = 224
MEAN, STD = [0.485 * 255, 0.456 * 255, 0.406 * 255], [0.229 * 255, 0.224 * 255, 0.225 * 255]
WARM = 200  # requests
BARS_MS = {(1, "p50"): 0.35, (1, "p99"): 0.8, (8, "p50"): 0.8}  # on a GPU, by requests in a call
CPU_BAR_US = 50.0  # over decoding and resizing alone
Answer = Callable[[Sequence[bytes]], Any]


def make_endpoint(on_gpu: bool, batch: int, threads: int, **options: Any) -> Endpoint:
    """Return an endpoint of the usual preprocessing of a classifier."""

    @pipeline_def(batch_size=batch, num_threads=threads, device_id=0 if on_gpu else None, seed=3, **options)
    def preprocess() -> Any:
        content = fn.external_source(name="content", dtype=types.UINT8, ndim=1)
        images = fn.decoders.image(content, device="mixed" if on_gpu else "cpu")
        images = fn.resize(images, size=(SIZE, SIZE))
        return fn.crop_mirror_normalize(images, mean=MEAN, std=STD)

    return Endpoint(preprocess())


def main() -> int:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="folder of JPEG files")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--requests", type=int, default=2000, help="measured requests of each contender")
    parser.add_argument("--threads", type=int, default=8, help="of the pipeline, for several requests in a call")
    parser.add_argument("--trace", action="store_true", help="GPU: print the device's and the driver's times of a call")
    arguments = parser.parse_args()
    files = sorted(p for p in arguments.data.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    contents = [file.read_bytes() for file in files]
    print(f"{time.strftime('%d %B %Y %H:%M', time.gmtime())} UTC, {len(contents)} files, "
          f"mean {statistics.mean(map(len, contents)) / 1e3:.0f} kB", flush=True)  # fmt: skip
    if arguments.device == "cpu":
        measure_cpu(contents, arguments.requests)
    else:
        for batch in (1, 8):
            measure_gpu(contents, batch, arguments)
    return 0


# ---- CPU ----


def measure_cpu(contents: Sequence[bytes], count: int, parts: int = 20) -> None:
    """Print the latency of a request, and the time of decoding and resizing alone, in alternation."""
    alone: list[float] = []
    calls: list[float] = []
    with _EndpointAndBatches() as (endpoint, batches):
        time_calls(endpoint, contents, 1, WARM)
        for part in range(parts):
            taken = [contents[(part * count // parts + i) % len(contents)] for i in range(count // parts)]
            for contender in ("alone", "calls") if part % 2 == 0 else ("calls", "alone"):
                if contender == "calls":
                    calls += time_calls(endpoint, taken, 1, len(taken))
                    continue
                start = time.perf_counter()
                batches(taken)
                alone += [(time.perf_counter() - start) / len(taken)]
    floor = statistics.median(alone) * 1e3
    call = statistics.mean(calls) * 1e3  # as the floor, which is a mean over the same files
    print(f"CPU, one request: mean {call:.3f} ms, {summary(calls)}")
    print(f"  decoding and resizing alone, one thread: {floor:.3f} ms; a request adds {(call - floor) * 1e3:.0f} us "
          f"(bar {CPU_BAR_US:.0f}): {'met' if (call - floor) * 1e3 <= CPU_BAR_US else 'missed'}")  # fmt: skip


class _EndpointAndBatches:
    """Context of the endpoint for single requests, and of the same steps for many on one thread."""

    def __enter__(self) -> tuple[Answer, Answer]:
        self._one, self._many = make_endpoint(False, 1, 1), make_endpoint(False, 100, 1)
        return self._one, self._many

    def __exit__(self, *_: object) -> None:
        self._one.close()
        self._many.close()


def time_calls(answer: Answer, contents: Sequence[bytes], batch: int, count: int) -> list[float]:
    """Return the seconds of ``count`` calls with ``batch`` requests each."""
    stream, found = itertools.cycle(contents), []
    for _ in range(count):
        requests = list(itertools.islice(stream, batch))
        start = time.perf_counter()
        results = answer(requests)
        found.append(time.perf_counter() - start)
        del results
    return found


def summary(seconds: Sequence[float]) -> str:
    """Return quantiles in milliseconds."""
    p50, p90, p99 = np.quantile(seconds, (0.5, 0.9, 0.99)) * 1e3
    return f"p50 {p50:.3f}, p90 {p90:.3f}, p99 {p99:.3f} ms, least {min(seconds) * 1e3:.3f}"


# ---- GPU ----


def measure_gpu(contents: Sequence[bytes], batch: int, arguments: argparse.Namespace, parts: int = 20) -> None:
    """Print the latency of calls with ``batch`` requests, and that of torchvision's calls."""
    import torch

    endpoints = {"stoker": make_endpoint(True, batch, arguments.threads, gpu_decoder_load=1.0)}
    if batch > 1:
        endpoints["stoker, decoding on the CPU"] = make_endpoint(True, batch, arguments.threads, gpu_decoder_load=0.0)
    contenders: dict[str, Answer] = {**endpoints, "torchvision, nvJPEG": torchvision_calls(torch, batch)}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for answer in contenders.values():
        time_calls(answer, contents, batch, WARM)
    size = max(1, arguments.requests // parts)
    for part in range(parts):
        taken = [contents[(part * size * batch + i) % len(contents)] for i in range(size * batch)]
        for name in contenders if part % 2 == 0 else reversed(contenders):
            times[name] += time_calls(contenders[name], taken, batch, size)
    print(f"\n{torch.cuda.get_device_name()}, {batch} in a call")
    for name, found in times.items():
        print(f"  {name:<32} {summary(found)}")
    for (count, quantile), bar in BARS_MS.items():
        if count == batch:
            got = float(np.quantile(times["stoker"], int(quantile[1:]) / 100)) * 1e3
            print(f"  {quantile}: {got:.3f} ms, bar {bar}: {'met' if got <= bar else 'missed'}", flush=True)
    if arguments.trace:
        trace(torch, endpoints["stoker"], contents, batch)
    for endpoint in endpoints.values():
        endpoint.close()


def torchvision_calls(torch: Any, batch: int) -> Answer:
    """Return the same result by torchvision's and torch's calls, image by image."""
    import torchvision
    from torchvision.transforms.v2 import functional

    mean = torch.tensor(MEAN, device="cuda")[:, None, None]
    std = torch.tensor(STD, device="cuda")[:, None, None]

    def answer(requests: Sequence[bytes]) -> Any:
        files = [torch.frombuffer(bytearray(r), dtype=torch.uint8) for r in requests]
        mode = torchvision.io.ImageReadMode.RGB
        images = torchvision.io.decode_jpeg(files, mode=mode, device="cuda")
        small = [functional.resize(image, [SIZE, SIZE], antialias=True) for image in images]
        result = (torch.stack(small).float() - mean) / std
        torch.cuda.synchronize()
        return result

    return answer


def trace(torch: Any, endpoint: Answer, contents: Sequence[bytes], batch: int, count: int = 200) -> None:
    """Print the microseconds of a call in kernels, copies and calls of the driver."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as found:
        time_calls(endpoint, contents, batch, count)
        torch.cuda.synchronize()
    totals: dict[str, list[float]] = {}
    for event in found.events():
        us = event.device_time_total or event.cpu_time_total
        totals.setdefault(event.name[:60], []).append(us)
    print("  by name: us in a call, of how many")
    for name, each in sorted(totals.items(), key=lambda item: -sum(item[1]))[:30]:
        print(f"    {name:<60} {sum(each) / count:8.1f} {len(each) / count:6.1f}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
