# SPDX-License-Identifier: Apache-2.0
"""Cases of ``python -m benchmarks.gpu --only training``: training on synthetic input and on a pipeline's output."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .gpu_pipelines import BATCH, CHAIN, INDEX_BYTES, make_pipeline

TURNS = 2
WARM, WARM_AUTO = 60, 400  # batches before the clock starts; the split needs some to settle


@dataclasses.dataclass(frozen=True)
class Fed:
    """Feed of a training: threads, the part of the rows that the GPU decodes, and whether files are indexed."""

    threads: int
    load: float | str
    indexed: bool

    @classmethod
    def parse(cls, text: str) -> Fed:
        threads, load, *index = text.split(":")
        if index not in ([], ["index"]):
            raise ValueError(f"expected THREADS:PART or THREADS:PART:index, got {text!r}")
        return cls(int(threads), load if load == "auto" else float(load), bool(index))

    def __str__(self) -> str:
        return f"{self.threads} threads, GPU decodes {self.load}" + ", index" * self.indexed


def measure_trainings(names: Iterable[str], files: list[str], fed: Iterable[str]) -> None:
    """Measure every model."""
    contenders = [Fed.parse(one) for one in fed]
    for name in names:
        measure_training(name, files, contenders)


def measure_training(name: str, files: list[str], fed: Iterable[Fed]) -> None:
    """Print images per second of training on synthetic input and on the pipeline's output, in alternation."""
    import torch

    x = torch.randn(BATCH, 3, 224, 224, device="cuda", dtype=torch.float16)
    y = torch.zeros(BATCH, dtype=torch.int64, device="cuda")
    contenders: dict[str, Callable[[], float]] = {"synthetic": lambda: train(name, itertools.repeat((x, y)), WARM)}
    for how in fed:
        warm = WARM if how.load != "auto" else WARM_AUTO
        contenders[str(how)] = functools.partial(lambda h, w: train(name, _loaded(files, h), w), how, warm)
    rates: dict[str, list[float]] = {label: [] for label in contenders}
    for turn in range(TURNS):
        for label in contenders if turn % 2 == 0 else reversed(contenders):
            if turn == 0 or "auto" not in label:
                rates[label].append(contenders[label]())
    synthetic = statistics.median(rates.pop("synthetic"))
    print(f"\ntraining {name}, bf16, channels last: synthetic {synthetic:,.0f} images/s")
    for label, measured in rates.items():
        fed = statistics.median(measured)
        print(f"  {label:<39} {fed:>9,.0f}   {100 * fed / synthetic:.1f} %", flush=True)


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


def _loaded(files: list[str], how: Fed) -> Iterator[tuple[Any, Any]]:
    from stoker.torch import Loader

    pipeline = make_pipeline(
        "stoker", CHAIN, files, "gpu", how.threads, 3, how.load, index=INDEX_BYTES if how.indexed else 0
    )
    with contextlib.closing(Loader(pipeline, last_batch_policy="drop")) as loader:
        try:
            while True:
                for images, labels in loader:
                    yield images, labels.cuda(non_blocking=True)
        finally:
            if how.load == "auto":
                print(f"  {how.threads} threads: {pipeline.report().decoding}", flush=True)
