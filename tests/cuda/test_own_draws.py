# SPDX-License-Identifier: Apache-2.0
"""Random tensors that a GPU draws: the CPU's bits, for all types, distributions and shapes."""

from __future__ import annotations

from typing import Any

import emulated_stages
import numpy as np
import pytest
from test_own_kernels import compare, rows_of

from stoker import DataError, fn, pipeline_def, types
from stoker.device.gpu import Gpu

BIG = (41, 67, 3)  # more elements than a block draws, and an odd number


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)], autouse=True)
def gpu(folder, monkeypatch, request):
    """Use the null device as GPU 0, unless there is a GPU."""
    if request.param == "null":
        opened = staticmethod(lambda number, limit=None: emulated_stages.EmulatedGpu(folder, limit))
        monkeypatch.setattr(Gpu, "open", opened)


def fed(rows: list[Any]) -> Any:
    return fn.external_source(source=lambda info: rows[info.idx_in_batch % len(rows)], batch=False)


def device_of(on_gpu: bool) -> dict[str, str]:
    return {"device": "gpu" if on_gpu else "cpu"}


DTYPES = (
    types.BOOL, types.UINT8, types.INT8, types.UINT16, types.INT16, types.UINT32, types.INT32, types.UINT64,
    types.INT64, types.FLOAT16, types.FLOAT, types.FLOAT64,
)  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_types(dtype: Any) -> None:
    """Also numbers beyond a type's range, and a shape with a last group of elements that is not whole."""

    @pipeline_def(batch_size=3, num_threads=2, seed=5)
    def pipe(on_gpu: bool) -> Any:
        form = {"dtype": dtype, **device_of(on_gpu)}
        return (
            fn.random.uniform(range=[-3.0, 300.0], shape=BIG, **form),
            fn.random.normal(mean=2.0, stddev=1e19, shape=BIG, **form),
            fn.random.normal(mean=0.25, stddev=2.0, shape=[2000], **form),
            fn.random.coin_flip(probability=0.3, shape=BIG, **form),
            fn.random.uniform(values=[-1.5, 7.0, 1e20], shape=BIG, **form),
        )

    uniform, _, normal, coins, values = compare(pipe)
    assert all(not np.array_equal(coins[0], x) for x in coins[1:]), "every row has its own numbers"
    assert len(np.unique(uniform[0])) > (0 if dtype == types.BOOL else 90)
    assert 0.25 < np.mean(coins[0].astype(float)) < 0.35
    assert len(np.unique(values[0])) == (1 if dtype == types.BOOL else 3)
    if dtype == types.FLOAT64:
        assert abs(normal[0].mean() - 0.25) < 0.2 and 1.8 < normal[0].std() < 2.2


@pytest.mark.parametrize("dtype", [types.FLOAT16, types.FLOAT, types.INT16])
def test_means_and_deviations(dtype: Any) -> None:
    """A GPU rounds most numbers from approximate ones, whose error depends on both parameters."""
    pairs = [(0.0, 1.0), (-0.0, 0.0), (5.0, 0.0), (1e6, 1e-3), (3.0, 1e-310), (1e30, 1e-5), (0.0, 1e-20)]

    @pipeline_def(batch_size=2, num_threads=2, seed=8)
    def pipe(on_gpu: bool) -> Any:
        return tuple(
            fn.random.normal(mean=mean, stddev=deviation, dtype=dtype, shape=BIG, **device_of(on_gpu))
            for mean, deviation in pairs
        )

    standard, *_, tiny = compare(pipe)
    assert len(np.unique(standard[0])) > (5 if dtype == types.INT16 else 1000)
    assert np.any(tiny[0]) == (dtype == types.FLOAT)


@pytest.mark.parametrize("dtype", [types.FLOAT16, types.FLOAT, types.FLOAT64])
def test_the_upper_end_of_a_range_is_excluded(dtype: Any) -> None:
    """Ranges of which rounding reaches the end: many numbers of half precision, or a range of two neighbours."""
    zero, one, two = (dtype.numpy.type(x) for x in range(3))
    above_one, least = float(np.nextafter(one, two)), float(np.nextafter(zero, one))
    ends = [
        (0.0, 1.0), (-1.0, 0.0), (-8.0, -2.0), (2.5, 2.5), (1.0, above_one), (-above_one, -1.0), (-least, 0.0),
        (1.0, 1.0 + 2.0**-40), (0.0, least),
    ]  # fmt: skip

    @pipeline_def(batch_size=2, num_threads=2, seed=6)
    def pipe(on_gpu: bool) -> Any:
        return tuple(fn.random.uniform(range=list(r), dtype=dtype, shape=[5001], **device_of(on_gpu)) for r in ends)

    for rows, (low, high) in zip(compare(pipe), ends, strict=True):
        assert all((x.astype(np.float64) < high).all() for x in rows) or dtype.numpy.type(high) == dtype.numpy.type(low)


def test_arguments_and_shapes_by_row() -> None:
    """Parameters of a row from nodes, values from the GPU, and shapes of rows: given, like an input, and empty."""
    lows = [np.array(x, np.float32) for x in (-1.0, 0.0, 100.0)]
    shapes = [np.array(s, np.int32) for s in ((40, 70), (1, 1), (0, 5))]
    values = [np.arange(n, dtype=np.int16) * 3 for n in (5, 1, 4000)]
    likes = [np.zeros(s, np.uint8) for s in ((9, 7, 3), (1, 1, 3), (80, 31, 3))]

    @pipeline_def(batch_size=3, num_threads=2, seed=7)
    def pipe(on_gpu: bool) -> Any:
        low, shape, given, like = fed(lows), fed(shapes), fed(values), fed(likes)
        where = device_of(on_gpu)
        like = like.gpu() if on_gpu else like
        both = fn.stack(low, low + 2.5)
        return (
            fn.random.uniform(range=both, shape=shape, **where),
            fn.random.uniform(like, values=given, dtype=types.INT16, **where),
            fn.random.uniform(like, values=given.gpu() * 2 if on_gpu else given * 2, dtype=types.INT32),
            fn.random.normal(like, mean=low, stddev=fn.random.uniform(range=[0.0, 1.0]), seed=77),
            fn.random.coin_flip(like, probability=fn.random.uniform(range=[0.0, 1.0])),
            fn.random.uniform(like) + fn.random.uniform(like),
        )

    uniform, _, _, normal, *_ = compare(pipe)
    assert [x.shape for x in uniform] == [(40, 70), (1, 1), (0, 5)]
    assert [x.shape for x in normal] == [x.shape for x in likes]


def test_few_numbers_and_arguments_stay_on_the_cpu() -> None:
    """Numbers that other operators take as arguments, also many, and tensors of a few elements."""
    images = [np.full((9, 7, 3), 50 + i, np.uint8) for i in range(3)]

    @pipeline_def(batch_size=3, num_threads=2, seed=8)
    def pipe(on_gpu: bool) -> Any:
        image = fed(images)
        image = image.gpu() if on_gpu else image
        factor = fn.random.uniform(range=[0.5, 1.5], **device_of(on_gpu))
        many = fn.random.uniform(range=[0.5, 1.5], shape=[2000], **device_of(on_gpu))
        few = fn.random.normal(shape=[4, 4], **device_of(on_gpu))
        return fn.brightness(image, brightness=factor), fn.brightness(image, brightness=many[7]), few, factor

    compare(pipe)


def test_no_values() -> None:
    for on_gpu in (False, True):

        @pipeline_def(batch_size=1, num_threads=1, device_id=0 if on_gpu else None)
        def pipe(on_gpu: bool = on_gpu) -> Any:
            return fn.random.uniform(values=fed([np.zeros(0, np.float32)]), shape=[3000], **device_of(on_gpu))

        with pipe() as running, pytest.raises(DataError, match="at least one element in `values`, got none"):
            running.run()


def test_epochs_and_resuming(tmp_path: Any) -> None:
    """Each epoch has its own numbers. A run that continues from a checkpoint has those of the run that wrote it."""
    paths = []
    for i in range(5):
        paths.append(tmp_path / f"{i}.bin")
        paths[-1].write_bytes(bytes([i]))

    @pipeline_def(batch_size=2, num_threads=2, seed=9)
    def pipe(on_gpu: bool) -> Any:
        data, _ = fn.readers.file(files=list(map(str, paths)), labels=list(range(5)), random_shuffle=True)
        drawn = fn.random.normal(shape=[1500], **device_of(on_gpu))
        return drawn, fn.random.uniform(shape=[1500], seed=3, **device_of(on_gpu)), data

    def batches(running: Any, count: int) -> list[list[np.ndarray]]:
        return [[x for output in running.run() for x in rows_of(output)] for _ in range(count)]

    with pipe(False) as cpu, pipe(True, device_id=0) as gpu:
        want, start = batches(cpu, 9), batches(gpu, 4)
        state = gpu.get_state()
    with pipe(True, device_id=0) as resumed:
        resumed.set_state(state)
        got = [*start, *batches(resumed, 5)]
    for a, b in zip(got, want, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True)) and len(a) == len(b)
    first, later = {x.tobytes() for b in want[:3] for x in b[:4]}, {x.tobytes() for b in want[3:6] for x in b[:4]}
    assert first.isdisjoint(later)
