# SPDX-License-Identifier: Apache-2.0
"""Cases of ``python -m benchmarks.gpu --only kinds``: cost and gain of the index, progressive files, scales.

Pipelines run one after the other in one process, in alternation, without other work. Rates are medians of rounds.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from .gpu_pipelines import BATCH, CHAIN, DECODE, DEPTH, INDEX_BYTES, consume, make_pipeline

ROUNDS = 5
PROGRESSIVE = 1024  # files


def measure_kinds(files: list[str], folder: Path, seconds: float) -> None:
    """Print all cases."""
    run = _Runs(seconds)
    _first_sight(run, files)
    _index_on_disk(run, files)
    run.compare("chain, 16 threads", {
        "files at first sight": (CHAIN, files, {}),
        "files known, read in part": (CHAIN, files, {"index": INDEX_BYTES}),
    })  # fmt: skip
    known = _progressive(files[:PROGRESSIVE], folder)
    run.compare("progressive files, chain", {
        "baseline": (CHAIN, files[:PROGRESSIVE], {}),
        "progressive, coefficients by the CPU": (CHAIN, known, {}),
    })  # fmt: skip
    scales = {f"1/{s}": (DECODE, files, {"scale_denom": s}) for s in (1, 2, 4, 8)}
    run.compare("decoding to RGB at smaller scales", scales)


class _Runs:
    def __init__(self, seconds: float) -> None:
        import torch

        self.seconds = seconds
        self.torch = torch
        self._total = torch.zeros((), dtype=torch.float64, device="cuda")

    def make(self, kind: str, files: list[str], **settings: Any) -> Any:
        """Return a pipeline on the GPU."""
        return make_pipeline("stoker", kind, files, "gpu", 16, DEPTH, **settings)

    def batches(self, pipeline: Any, count: int) -> None:
        """Take batches, and wait until the device is idle."""
        for _ in range(count):
            consume(pipeline.run(), self._total)
        self.torch.cuda.synchronize()

    def compare(self, title: str, what: dict[str, tuple[str, list[str], dict[str, Any]]]) -> None:
        """Return the rates of pipelines, in alternation."""
        pipelines = {label: self.make(kind, files, **settings) for label, (kind, files, settings) in what.items()}
        rates: dict[str, list[float]] = {label: [] for label in what}
        for label, pipeline in pipelines.items():
            self.batches(pipeline, 2 * len(what[label][1]) // BATCH + 8)
        for _ in range(ROUNDS):
            for label, pipeline in pipelines.items():
                self.batches(pipeline, 8)
                rows, start = 0, time.perf_counter()
                while time.perf_counter() - start < self.seconds:
                    consume(pipeline.run(), self._total)
                    rows += BATCH
                self.torch.cuda.synchronize()
                rates[label].append(rows / (time.perf_counter() - start))
        print(f"\n{title} [images/s]")
        first = statistics.median(next(iter(rates.values())))
        for label, measured in rates.items():
            middle = statistics.median(measured)
            low, high = min(measured), max(measured)
            print(f"  {label:<40} {middle:>9,.0f} ({low:,.0f} .. {high:,.0f})  {middle / first:.2f}x", flush=True)
            pipelines[label].close()


def _first_sight(run: _Runs, files: list[str]) -> None:
    """Measure the cost of building the index: the rest of an epoch of new files, with and without it."""
    times: dict[str, list[float]] = {"without the index": [], "building the index": []}
    warm, rest = 6, len(files) // BATCH - 6
    for _ in range(ROUNDS):
        for label, settings in zip(times, ({}, {"index": INDEX_BYTES}), strict=True):
            pipeline = run.make(CHAIN, files, **settings)
            run.batches(pipeline, warm)
            start = time.perf_counter()
            run.batches(pipeline, rest)
            times[label].append(1e6 * (time.perf_counter() - start) / (rest * BATCH))
            pipeline.close()
    print(f"\nfirst epoch, its last {rest} batches [us per image]")
    for label, measured in times.items():
        print(
            f"  {label:<40} {statistics.median(measured):.2f} ({min(measured):.2f} .. {max(measured):.2f})", flush=True
        )


def _index_on_disk(run: _Runs, files: list[str]) -> None:
    """Measure writing the index, its size, and building a pipeline that reads it."""
    with tempfile.TemporaryDirectory() as folder:
        pipeline = run.make(CHAIN, files, index=INDEX_BYTES, index_path=folder)
        run.batches(pipeline, 2 * len(files) // BATCH)
        start = time.perf_counter()
        pipeline.close()
        wrote = time.perf_counter() - start
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        start = time.perf_counter()
        pipeline = run.make(CHAIN, files, index=INDEX_BYTES, index_path=folder)
        built = time.perf_counter() - start
        run.batches(pipeline, len(files) // BATCH)
        each = size / len(files)
        print(f"\nindex on disk: {each:.0f} bytes per file, written in {wrote:.2f} s, built with it in {built:.2f} s")
        print(f"  {pipeline.report().codecs['jpeg'].known}", flush=True)
        pipeline.close()


def _progressive(files: list[str], folder: Path) -> list[str]:
    target = folder.with_name(folder.name + "-progressive")
    target.mkdir(parents=True, exist_ok=True)
    jobs = [(path, str(target / Path(path).name)) for path in files]
    with ProcessPoolExecutor() as pool:
        list(pool.map(_make_progressive, [job for job in jobs if not Path(job[1]).exists()], chunksize=32))
    return [path for _, path in jobs]


def _make_progressive(job: tuple[str, str]) -> None:
    from PIL import Image

    with Image.open(job[0]) as image:
        image.save(job[1], "JPEG", quality="keep", progressive=True)
