# SPDX-License-Identifier: Apache-2.0
"""Cases of ``python -m benchmarks.gpu --only training``: training on synthetic input and on a pipeline's output."""

from __future__ import annotations

import contextlib
import functools
import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .gpu_pipelines import BATCH, CHAIN, make_pipeline

TURNS = 2
WARM, WARM_AUTO = 60, 400  # batches before the clock starts; the split needs some to settle


def measure_trainings(names: Iterable[str], files: list[str], fed: Iterable[str]) -> None:
    """Measure every model."""
    contenders = [(int(t), load if load == "auto" else float(load)) for t, load in (one.split(":") for one in fed)]
    for name in names:
        measure_training(name, files, contenders)


def measure_training(name: str, files: list[str], fed: Iterable[tuple[int, float | str]]) -> None:
    """Print images per second of training on synthetic input and on the pipeline's output, in alternation."""
    import torch

    x = torch.randn(BATCH, 3, 224, 224, device="cuda", dtype=torch.float16)
    y = torch.zeros(BATCH, dtype=torch.int64, device="cuda")
    contenders: dict[str, Callable[[], float]] = {"synthetic": lambda: train(name, itertools.repeat((x, y)), WARM)}
    for threads, load in fed:
        warm = WARM if load != "auto" else WARM_AUTO
        contenders[f"{threads} threads, GPU decodes {load}"] = functools.partial(
            lambda t, g, w: train(name, _loaded(files, t, g), w), threads, load, warm
        )
    rates: dict[str, list[float]] = {label: [] for label in contenders}
    for turn in range(TURNS):
        for label in contenders if turn % 2 == 0 else reversed(contenders):
            if turn == 0 or "auto" not in label:
                rates[label].append(contenders[label]())
    synthetic = statistics.median(rates.pop("synthetic"))
    print(f"\ntraining {name}, bf16, channels last: synthetic {synthetic:,.0f} images/s")
    for label, measured in rates.items():
        fed = statistics.median(measured)
        print(f"  {label:<32} {fed:>9,.0f}   {100 * fed / synthetic:.1f} %", flush=True)


def train(name: str, batches: Iterable[tuple[Any, Any]], warm: int, steps: int = 80) -> float:
    """Return images per second of this number of steps after ``warm`` ones."""
    import torch
    import torchvision

    torch.manual_seed(0)
    model = getattr(torchvision.models, name)().cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    criterion = torch.nn.CrossEntropyLoss()
    start = 0.0
    for done, (x, y) in enumerate(itertools.islice(batches, warm + steps)):
        if done == warm:
            torch.cuda.synchronize()
            start = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16):
            loss = criterion(model(x.to(memory_format=torch.channels_last)), y % 1000)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    torch.cuda.synchronize()
    return steps * BATCH / (time.perf_counter() - start)


def _loaded(files: list[str], threads: int, load: float | str) -> Iterator[tuple[Any, Any]]:
    from stoker.torch import Loader

    pipeline = make_pipeline("stoker", CHAIN, files, "gpu", threads, 3, load)
    with contextlib.closing(Loader(pipeline, last_batch_policy="drop")) as loader:
        try:
            while True:
                for images, labels in loader:
                    yield images, labels.cuda(non_blocking=True)
        finally:
            if load == "auto":
                print(f"  {threads} threads: {pipeline.report().decoding}", flush=True)
