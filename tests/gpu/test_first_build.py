# SPDX-License-Identifier: Apache-2.0
"""The first build on a machine, which compiles, and later ones, which do not. With ``-s``: their times."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import fn, pipeline_def, types
from stoker.device import compile as compiling
from tests.run.pipelines import files_of


@pipeline_def(batch_size=8, num_threads=4, seed=3)
def training(files: list[str], device: str) -> Any:
    data, _ = fn.readers.file(files=files, random_shuffle=True)
    images = fn.decoders.image_random_crop(data, device=device)
    images = fn.resize(images, resize_x=48, resize_y=40)
    images = fn.rotate(images, angle=fn.random.uniform(range=(-20.0, 20.0)), keep_size=True)
    return fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip(), mean=[120.0], std=[60.0], dtype=types.FLOAT16)


@pytest.mark.parametrize("at_once", ["1", ""], ids=["one at a time", "all cores"])
def test_a_first_build_and_a_second(
    images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_once: str
) -> None:
    monkeypatch.setenv("STOKER_NUM_THREADS", at_once)
    monkeypatch.setenv("STOKER_KERNEL_CACHE", str(tmp_path))
    files = [f for f in files_of(images) if f.lower().endswith((".jpg", ".jpeg"))]
    sources: list[str] = []
    real = compiling._compile
    monkeypatch.setattr(compiling, "_compile", lambda source, *rest: sources.append(source) or real(source, *rest))
    with training(files, "cpu") as cpu:
        wanted = [cpu.run()[0].as_cpu() for _ in range(3)]
    for build in ("first", "second"):
        start = time.perf_counter()
        with training(files, "mixed", device_id=0) as pipe:
            got = [pipe.run()[0]]
            took = time.perf_counter() - start
            got += [pipe.run()[0] for _ in wanted[1:]]
            for a, b in zip(got, wanted, strict=True):
                for x, y in zip(a.as_cpu(), b, strict=True):
                    np.testing.assert_array_equal(x, y)
        print(f"{build} build and batch, {at_once or 'all'} at a time: {took:.2f} s")
        cached = len(list(tmp_path.glob("*.cubin")))
        assert len(sources) == len(set(sources)) == cached >= 7  # the second compiles nothing
