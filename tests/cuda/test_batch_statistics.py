# SPDX-License-Identifier: Apache-2.0
"""`normalize` with the statistics of a batch in GPU memory: the bits of the CPU, and the rows that take part there."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import emulated_stages
import numpy as np
import pytest

from stoker import DataError, eager, fn, pipeline_def, types
from stoker.contract.step import Native
from tests.complete import sample
from tests.run.pipelines import files_of

RNG = np.random.default_rng(17)


@pytest.fixture(autouse=True, params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)])
def gpu(request: pytest.FixtureRequest) -> Any:
    """Use the null device as GPU 0, unless there is a GPU."""
    if request.param == "null":
        request.getfixturevalue("emulated_gpu")
    return request.param


def ragged(count: int, dtype: Any, other: Sequence[int] = (7, 3)) -> list[Any]:
    """Return rows of different heights."""
    shapes = [(int(n), *other) for n in RNG.integers(1, 9, count)]
    if np.dtype(dtype).kind == "f":
        return [RNG.normal(3, 50, shape).astype(dtype) for shape in shapes]
    limits = np.iinfo(dtype)
    return [RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True) for shape in shapes]


@pipeline_def(num_threads=3, on_error="skip", error_limit=1.0)
def normalized(rows: list[Any], device: str, below: list[Any] | None = None, **arguments: Any) -> Any:
    """Normalize rows by their batch, divided by ``below`` before."""
    x = fn.external_source(source=[rows], layout="HWC" if rows[0].ndim == 3 else "", device="cpu")
    more = {k: fn.external_source(source=[v]) if isinstance(v, list) and k in ("mean", "stddev") else v
            for k, v in arguments.items()}  # fmt: skip
    if below is not None:
        x = (x.gpu() if device == "gpu" else x) // fn.external_source(source=[below])
    return fn.normalize(x, batch=True, device=device, **more)


def delivered(pipe: Any, device: str = "") -> list[Any]:
    """Return the rows of the only batch on the CPU. The averages are pooled on ``device``, if it is given."""
    with pipe:
        (output,) = pipe.run()
        pools = [s for s in pipe.execution.plan.steps if isinstance(s.body, Native) and s.body.kernel == "pool_rows"]
        assert pools and (not device or all(s.on_gpu == (device == "gpu") for s in pools))
        return [np.array(row) for row in output.as_cpu()]


def on_both(rows: list[Any], **arguments: Any) -> list[Any]:
    """Return the rows after a comparison of the bits of CPU and GPU."""
    want = delivered(normalized(rows, "cpu", batch_size=len(rows), **arguments), "cpu")
    got = delivered(normalized(rows, "gpu", batch_size=len(rows), device_id=0, **arguments), "gpu")
    assert len(got) == len(want)
    for one, other in zip(got, want, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_array_equal(one, other)
    return got


DTYPES = ("uint8", "int16", "uint32", "int64", "float16", "float32", "float64")
AXES = (None, [0, 1], [0], [-3])


@pytest.mark.parametrize(("dtype", "axes"), sample([*itertools.product(DTYPES, AXES)], 10))
def test_types_and_axes(dtype: str, axes: list[int] | None) -> None:
    rows = ragged(5, dtype)
    got = on_both(rows, axes=axes)
    if axes is None and dtype == "uint8":
        everything = np.concatenate([row.reshape(-1) for row in rows]).astype(np.float64)
        np.testing.assert_allclose(got[3], (rows[3] - everything.mean()) / everything.std(), atol=1e-6)


@pytest.mark.parametrize(
    "arguments",
    [
        {"ddof": 1, "epsilon": 0.25, "scale": 64.0, "shift": 128.0, "dtype": types.UINT8},
        {"axis_names": "HW", "scale": -3.0, "dtype": types.FLOAT16},
        {"ddof": 10**9}, {"ddof": 10**9, "epsilon": 4.0},
        {"mean": 100.0}, {"stddev": 3.0, "axes": [1, 0]}, {"stddev": 0.0},
        {"mean": [np.full((1, 1, 3), i, np.float32) for i in range(6)], "axes": [0, 1]},
        {"stddev": [np.float32(i) for i in range(6)], "axes": [0, 1], "dtype": types.BFLOAT16},
        {"axes": [2]}, {"axes": []}, {"axes": [1]},
    ],
    ids=str,
)  # fmt: skip
def test_arguments(arguments: dict[str, Any]) -> None:
    rows = [RNG.integers(0, 256, (8, 6, 3), np.uint8) for _ in range(6)]
    on_both(rows, **arguments)


@pytest.mark.parametrize("count", [1, 2, 31, 33, 257, 300])
def test_numbers_of_rows(count: int) -> None:
    """Lanes have no row, one, or several. Columns do not fill the last block."""
    on_both(ragged(count, np.float32, (11,)), axes=[0])


def test_many_elements_of_a_row() -> None:
    """The averages of a row have several chunks."""
    on_both([RNG.integers(0, 256, (n, 60, 3), np.uint8) for n in (90, 40, 200)], axes=[0, 1])


@pytest.mark.parametrize("axes", [None, [0, 1], [0]])
def test_rows_without_elements(axes: list[int] | None) -> None:
    """They take part with no numbers."""
    rows = ragged(4, np.uint8)
    empty = [np.zeros((0, 7, 3), np.uint8)]
    got = on_both([*empty, *rows[:2], *empty, *rows[2:]], axes=axes)
    alone = on_both(rows, axes=axes)
    for one, other in zip([got[1], got[2], got[4], got[5]], alone, strict=True):
        np.testing.assert_array_equal(one, other)
    assert all(row.size == 0 for row in on_both(empty * 3, axes=axes))


def test_numbers_that_are_not_finite() -> None:
    rows = ragged(4, np.float32)
    rows[1][0, 0, 1], rows[2][0, 0, 2] = np.nan, np.inf
    got = on_both(rows, axes=[0, 1])
    assert all(np.isnan(row[..., 1]).all() and np.isfinite(row[..., 0]).all() for row in got)
    assert all(np.isnan(row).all() for row in on_both(rows))


def test_rows_that_fail_on_the_gpu_leave_the_batch() -> None:
    """The device finds the zero divisor when the batch is done, and the other rows are computed again."""
    rows = [RNG.integers(0, 30000, (5, 7, 3), np.int32) for _ in range(6)]
    below = [np.full((5, 7, 3), 1 + i, np.int32) for i in range(6)]
    good = [row // n for row, n in zip(rows, below, strict=True)]
    below[1][2, 3, 1] = below[4][0, 0, 0] = 0
    got = on_both(rows, below=below, axes=[0, 1])
    rest = on_both([good[i] for i in (0, 2, 3, 5)], axes=[0, 1])
    for one, other in zip(got, rest, strict=True):
        np.testing.assert_array_equal(one, other)


@pipeline_def(batch_size=5, num_threads=2, on_error="skip", error_limit=1.0)
def permuted(rows: list[Any], below: list[Any], device: str) -> Any:
    """Divide rows, and take each from the row after it."""
    x = fn.external_source(source=[rows])
    x = (x.gpu() if device == "gpu" else x) // fn.external_source(source=[below])
    return fn.permute_batch(x, indices=[1, 2, 3, 4, 0])


def test_rows_that_take_data_of_a_row_that_fails_on_the_gpu() -> None:
    rows = [RNG.integers(0, 100, (4, 3), np.int32) for _ in range(5)]
    below = [np.full((4, 3), 1 + i, np.int32) for i in range(5)]
    below[2][1, 1] = 0
    for device in ("cpu", "gpu"):
        with permuted(rows, below, device, device_id=None if device == "cpu" else 0) as pipe:
            (output,) = pipe.run()
            assert output.skipped == (1, 2)
            for got, row in zip(output.as_cpu(), (1, 4, 0), strict=True):
                np.testing.assert_array_equal(np.array(got), rows[row] // below[row])


def test_a_batch_whose_rows_all_fail() -> None:
    rows = ragged(3, np.int32)
    assert on_both(rows, below=[np.zeros(row.shape, np.int32) for row in rows]) == []


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_other_axes_have_equal_extents(device: str) -> None:
    rows = ragged(4, np.uint8, (7, 3))
    rows[2] = rows[2][:, :5]
    pipe = normalized(
        rows, device, axes=[0], batch_size=4, device_id=None if device == "cpu" else 0, on_error="raise"
    )  # fmt: skip
    with pipe, pytest.raises(DataError, match=r"equal extents along the other axes .*\[1, 7, 3\] and \[1, 5, 3\]"):
        pipe.run()


@pipeline_def(batch_size=6, num_threads=2, enable_conditionals=True)
def branches(rows: list[Any], device: str) -> Any:
    x = fn.external_source(source=[rows], layout="HWC")
    chosen = fn.external_source(source=[[np.bool_(i % 3 == 1) for i in range(len(rows))]])
    if device == "gpu":
        x = x.gpu()
    if chosen:  # noqa: SIM108 (conditions are statements)
        y = fn.normalize(x, batch=True)
    else:
        y = fn.normalize(x, axes=[0, 1], batch=True, scale=2.0)
    return y


def test_the_rows_of_a_branch_are_its_batch() -> None:
    rows = ragged(6, np.uint8)
    got, want = (
        delivered(branches(rows, device, device_id=None if device == "cpu" else 0)) for device in ("gpu", "cpu")
    )
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)
    chosen = on_both([rows[1], rows[4]])
    np.testing.assert_array_equal(got[1], chosen[0])
    np.testing.assert_array_equal(got[4], chosen[1])


@pytest.fixture(scope="module")
def files(jpegs: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Create photographs. One is no image, and one is missing."""
    root, good = tmp_path_factory.mktemp("bad"), files_of(jpegs)
    names = [str(root / f"{n:02}.jpg") for n in range(10)]
    for n, name in enumerate(names):
        if n != 7:
            Path(name).write_bytes(b"this is no photograph" if n == 3 else Path(good[n % len(good)]).read_bytes())
    return names


@pipeline_def(batch_size=5, num_threads=2, seed=7, error_limit=1.0)
def decoded(files: list[str], device: str) -> Any:
    data, labels = fn.readers.file(files=files)
    images = fn.decoders.image(data, device="mixed" if device == "gpu" else "cpu")
    return fn.normalize(images, axes=[0, 1], batch=True), labels


@pytest.mark.parametrize("on_error", ["skip", "replace"])
def test_photographs_that_cannot_be_decoded(files: list[str], on_error: Any) -> None:
    """A substitute takes part in the statistics of the batch that it joins."""
    found = []
    for device in ("cpu", "gpu"):
        pipe = decoded(files, device, on_error=on_error, device_id=None if device == "cpu" else 0)
        with pipe:
            batches = [pipe.run() for _ in range(2)]
            found.append([[np.array(x) for x in images.as_cpu()] for images, _ in batches])
    for got, want in zip(found[1], found[0], strict=True):
        assert len(got) == len(want) == (4 if on_error == "skip" else 5)
        for one, other in zip(got, want, strict=True):
            np.testing.assert_array_equal(one, other)
        pixels = np.concatenate([x.reshape(-1, 3) for x in got]).astype(np.float64)
        np.testing.assert_allclose(pixels.mean(0), 0, atol=1e-4)
        np.testing.assert_allclose(pixels.std(0), 1, rtol=1e-4)


def test_an_eager_call() -> None:
    rows = ragged(5, np.uint8)
    got = eager.normalize(rows, batch=True, device="gpu")
    for one, other in zip(got.as_cpu(), eager.normalize(rows, batch=True), strict=True):
        np.testing.assert_array_equal(np.array(one), np.array(other))
