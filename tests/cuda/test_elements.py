# SPDX-License-Identifier: Apache-2.0
"""Operators with random bits, tables and coordinates, on an emulated GPU: the CPU's bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emulated_stages
import numpy as np
import pytest

import stoker.device.gpu
from stoker import fn, pipeline_def, types
from stoker.contract.gpu import StageRows
from stoker.device.generate import generate
from stoker.device.gpu import Gpu

ROWS = 3
TABLE = stoker.table(np.arange(256) ** 2)


@stoker.fuse
def on_both_devices(p, strength: float):  # type: ignore[no-untyped-def]
    """Function on pixels with channels, coordinates, a table and random bits."""
    value = stoker.where(p.x > 3, p[1] - p.value, np.sqrt(p.value)) * strength
    return value + 0.001 * TABLE[p.value] * p.uniform() + p.y / p.height


OPERATORS: dict[str, Callable[[Any], Any]] = {
    "noise.gaussian": lambda x: fn.noise.gaussian(x, mean=2.0, stddev=fn.random.uniform(range=[5, 40])),
    "noise.salt_and_pepper": lambda x: fn.noise.salt_and_pepper(x, prob=0.3, per_channel=True),
    "lookup_table": lambda x: fn.lookup_table(
        fn.cast(x, dtype=types.UINT16), keys=[0, 9, 200], values=[7, 8, 9], default_value=-1.5
    ),
    "posterize": lambda x: fn.solarize(fn.posterize(x, bits=3)),
    "autocontrast": lambda x: fn.autocontrast(x),
    "sharpness": lambda x: fn.sharpness(x, factor=2.5),
    "erase": lambda x: fn.erase(x, anchor=[1, 2, 0, 0], shape=[2, 3, 1, 9], fill_value=[1, 2, 3]),
    "erase thousands": lambda x: fn.erase(
        x, anchor=[1, 2, 30, 3] * 1000, shape=[2, 3, 1, 9] * 1000, fill_value=[1, 2, 300]
    ),
    "erase regions of rows": lambda x: fn.erase(
        fn.transpose(x, perm=[2, 0, 1]), anchor=fn.random.uniform(range=[-9, 30], shape=[20]), shape=[2.5, 3.5] * 10
    ),
    "coarse_dropout": lambda x: fn.coarse_dropout(x, holes=[0, 4], height=[0.1, 0.5]),
    "grid_mask": lambda x: fn.grid_mask(x, tile=4, angle=fn.random.uniform(range=[-1, 1])),
    "channel_shuffle": lambda x: fn.channel_shuffle(x),
    "fuse": lambda x: fn.flip(on_both_devices(fn.flip(x), strength=fn.random.uniform(range=[1, 2]))),
}


@pytest.fixture(autouse=True)
def gpu(folder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        Gpu, "open", staticmethod(lambda number, memory_limit=None: emulated_stages.EmulatedStages(folder))
    )


def images(info: Any) -> Any:
    rng = np.random.default_rng(info.idx_in_epoch)
    return rng.integers(0, 256, (5 + 30 * (info.idx_in_epoch % 2), 9 + info.idx_in_epoch, 3), dtype=np.uint8)


@pipeline_def(batch_size=ROWS, num_threads=1, seed=4, device_id=0)
def every_operator(device: str) -> Any:
    x = fn.external_source(source=images, batch=False, dtype=types.UINT8, ndim=3, layout="HWC", device=device)
    # The noise moves with its element through a flip, and both are one kernel.
    return *(define(x) for define in OPERATORS.values()), fn.flip(fn.noise.gaussian(x), horizontal=1)


@pipeline_def(batch_size=ROWS, num_threads=1, seed=4, device_id=0)
def moved_elements(device: str) -> Any:
    """Contiguous images, some of which begin between two multiples of 16 bytes, and RGB pixels that move as a whole."""
    x = fn.external_source(source=even_images, batch=False, dtype=types.UINT8, ndim=3, layout="HWC", device=device)
    planes = fn.transpose(x, perm=[2, 0, 1])
    return (
        x[1:] * types.Constant(2, dtype=types.UINT8), fn.cast(x[1:], dtype=types.UINT16), fn.flip(x, horizontal=1),
        fn.flip(x, horizontal=1, vertical=1), planes, fn.transpose(planes, perm=[1, 2, 0]) + 7, fn.flip(planes) / 2,
    )  # fmt: skip


@pipeline_def(batch_size=ROWS, num_threads=1, seed=4, device_id=0)
def drawn_pixels(device: str) -> Any:
    """Pixels of whole words, whose channels share their draw or not."""
    x = fn.external_source(source=wide_images, batch=False, dtype=types.UINT8, ndim=3, layout="HWC", device=device)
    noisy = fn.noise.salt_and_pepper(x, prob=0.3)
    return noisy, fn.flip(noisy), fn.noise.salt_and_pepper(x, prob=0.3, per_channel=True)


@pipeline_def(batch_size=ROWS, num_threads=1, seed=4, device_id=0)
def points(device: str) -> Any:
    """Rows of two numbers whose coordinates a program reads: of any count and order, and pixels of two channels."""
    x = fn.external_source(source=pairs, batch=False, dtype=types.FLOAT, ndim=2, device=device)
    planes = fn.external_source(
        source=lambda info: pairs(info).T.copy(), batch=False, dtype=types.FLOAT, ndim=2, device=device
    )
    shades = fn.external_source(
        source=lambda info: wide_images(info)[..., :2].copy(), batch=False, dtype=types.UINT8, ndim=3, layout="HWC",
        device=device,
    )  # fmt: skip
    flipped = fn.coord_flip(x, flip_x=1, flip_y=fn.random.coin_flip())
    return (
        flipped, fn.coord_flip(x[1:], flip_y=1), fn.coord_flip(x[::-1]), fn.coord_flip(fn.transpose(planes)),
        fn.transpose(flipped), fn.coord_flip(fn.cast(x, dtype=types.FLOAT16)),
        fn.coord_flip(fn.cast(x, dtype=types.FLOAT64)), fn.noise.salt_and_pepper(shades, prob=0.3),
        fn.sharpness(shades, factor=2),
    )  # fmt: skip


def pairs(info: Any) -> Any:
    count = (3, 41, 300)[info.idx_in_epoch % ROWS]
    return np.random.default_rng(info.idx_in_epoch).normal(0, 1, (count, 2)).astype(np.float32)


def wide_images(info: Any) -> Any:
    return np.random.default_rng(info.idx_in_epoch).integers(0, 256, (18, 12, 3), dtype=np.uint8)


def even_images(info: Any) -> Any:
    return np.random.default_rng(info.idx_in_epoch).integers(0, 256, (18, 11, 3), dtype=np.uint8)


@pytest.mark.parametrize("pipeline", [moved_elements, drawn_pixels, points])
def test_moved_and_drawn_elements(pipeline: Any) -> None:
    with pipeline("gpu") as on_gpu, pipeline("cpu") as on_cpu:
        for number, (got, want) in enumerate(zip(on_gpu.run(), on_cpu.run(), strict=True)):
            for a, b in zip(got.as_cpu(), want, strict=True):
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b), str(number))


def test_outputs_are_the_cpus() -> None:
    names = [*OPERATORS, "a flip of noise"]
    with every_operator("gpu") as on_gpu, every_operator("cpu") as on_cpu:
        for _ in range(2):
            for name, got, want in zip(names, on_gpu.run(), on_cpu.run(), strict=True):
                for a, b in zip(got.as_cpu(), want, strict=True):
                    np.testing.assert_array_equal(np.asarray(a), np.asarray(b), name)


@pipeline_def(batch_size=ROWS, num_threads=1, seed=4, device_id=0)
def few_elements(device: str) -> Any:
    """Rows of a few elements with known extents, a row of one more element than the small form has, one unknown."""
    x = [
        fn.external_source(source=numbers(n), batch=False, dtype=types.FLOAT, ndim=1, device=device)
        for n in (6, 256, 257, 5)
    ]
    small, limit, above = (fn.reshape(y, shape=s) for y, s in zip(x[:3], ([2, 3], [256], [257]), strict=True))
    unknown = x[3]
    return small * 2 + 1, fn.transpose(small), limit / 3, above / 3, unknown - 1, fn.cast(limit, dtype=types.UINT8)


def numbers(count: int) -> Callable[[Any], Any]:
    return lambda info: np.random.default_rng(info.idx_in_epoch).uniform(0, 99, count).astype(np.float32)


def test_few_elements() -> None:
    with few_elements("gpu") as on_gpu, few_elements("cpu") as on_cpu:
        for number, (got, want) in enumerate(zip(on_gpu.run(), on_cpu.run(), strict=True)):
            for a, b in zip(got.as_cpu(), want, strict=True):
                np.testing.assert_array_equal(np.asarray(a), np.asarray(b), str(number))


def test_few_elements_have_no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of lanes take most of the time of a kernel's compilation."""
    made: list[tuple[StageRows, str]] = []

    def watched(*arguments: Any, rows: StageRows, **more: Any) -> Any:
        source = generate(*arguments, rows=rows, **more)
        made.append((rows, source.stage))
        return source

    monkeypatch.setattr(stoker.device.gpu, "generate", watched)
    monkeypatch.setattr(stoker.device.gpu, "_SOURCES", stoker.device.gpu.StageSources(64))  # of no other test
    with few_elements("gpu") as pipe:
        pipe.run()
    few = ["kGroup = 1;" in text for rows, text in made if rows.few_lanes]
    others = ["kGroup = 1;" in text for rows, text in made if not rows.few_lanes]
    assert len(few) >= 4 and all(few)
    assert len(others) >= 2 and not all(others)
