# SPDX-License-Identifier: Apache-2.0
"""Data set of GPU benchmarks: many different files, derived from few photographs."""

from __future__ import annotations

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any


def add_arguments(parser: argparse.ArgumentParser, seconds: float) -> None:
    """Add the arguments that GPU benchmarks share: data set, length of a round, contender."""
    parser.add_argument("--data", type=Path, required=True, help="folder of JPEG files to make the data set from")
    parser.add_argument("--files", type=int, default=4096, help="number of files")
    parser.add_argument("--work", type=Path, default=Path("/dev/shm/stoker-bench-gpu"), help="folder for the files")
    parser.add_argument("--seconds", type=float, default=seconds, help="length of a round")
    parser.add_argument("--contender", help=argparse.SUPPRESS)


def make_files(photographs: Path, folder: Path, count: int) -> list[str]:
    """Write ``count`` different files: photographs, cropped by some pixels and encoded with their chroma sampling."""
    sources = sorted(str(p) for p in photographs.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [(sources[i % len(sources)], str(folder / f"{i:06}.jpg"), i // len(sources)) for i in range(count)]
    missing = [job for job in jobs if not os.path.exists(job[1])]
    with ProcessPoolExecutor() as pool:
        for _ in pool.map(_make_file, missing, chunksize=32):
            pass
    return [path for _, path, _ in jobs]


def _make_file(job: tuple[str, str, int]) -> None:
    from PIL import Image, JpegImagePlugin

    source, path, turn = job
    with Image.open(source) as image:
        sampling = JpegImagePlugin.get_sampling(image)
        tables = image.quantization  # as many bits per pixel as in the original
        pixels = image.convert("L" if image.mode == "L" else "RGB")
    box = (turn % 5, turn // 5 % 5, pixels.width - turn // 25 % 3, pixels.height - turn // 75 % 3)
    options: dict[str, Any] = {"qtables": tables, "optimize": turn % 2 == 0}
    if sampling >= 0 and pixels.mode == "RGB":
        options["subsampling"] = sampling
    pixels.crop(box).save(path, "JPEG", **options)


def describe(files: list[str]) -> None:
    """Print machine and data."""
    import torch

    total = 0
    for path in files:  # also loads them into the page cache
        with open(path, "rb") as file:
            total += len(file.read())
    print(f"date        {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}")
    print(f"GPU         {torch.cuda.get_device_name(0)}, torch {torch.__version__}")
    print(f"cores       {len(os.sched_getaffinity(0))}")
    print(f"data        {len(files)} files, mean {total / len(files) / 1e3:.1f} kB, in the page cache", flush=True)
