# SPDX-License-Identifier: Apache-2.0
"""Outputs that are views of arrays in a GPU's memory, or rows of other positions of the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import emulated_stages
import numpy as np
import pytest
from test_device_inputs import ROWS, Interface, images

from stoker import DataError, fn, pipeline_def, types

TWICE = [3, 0, 0, 4, 3]  # two rows are taken twice, two not at all


@pytest.fixture(params=["null", pytest.param("cuda", marks=emulated_stages.NEEDS_GPU)])
def to_device(request: pytest.FixtureRequest) -> Callable[[np.ndarray], Any]:
    """Return a function that copies an array to the device."""
    if request.param == "cuda":
        import torch

        return lambda a: torch.as_tensor(np.ascontiguousarray(a)).cuda()
    request.getfixturevalue("emulated_gpu")
    return Interface


def run(define: Callable[[Any], Any], data: Any, **settings: Any) -> list[list[np.ndarray]]:
    """Return the rows of each output of two equal batches, which must be equal."""

    @pipeline_def(batch_size=ROWS, num_threads=2, device_id=0, seed=3, **settings)
    def defined() -> Any:
        return define(fn.external_source(name="x", device="gpu", layout="HWC", no_copy=True))

    with defined() as pipe:
        first, second = ([[np.asarray(row) for row in out.as_cpu()] for out in pipe.run(x=data)] for _ in range(2))
    for before, after in zip(first, second, strict=True):
        for a, b in zip(before, after, strict=True):
            np.testing.assert_array_equal(a, b)
    return first


def fed(form: str, to_device: Callable[[np.ndarray], Any]) -> tuple[Any, list[np.ndarray]]:
    """Return a batch on the device, and its rows."""
    if form == "ragged":
        rows = [images(h, (h, h + 3, 3)) for h in range(5, 5 + ROWS)]
        return [to_device(row) for row in rows], rows
    batch = images(1)
    rows = list(batch)
    if form == "strided":
        return to_device(np.repeat(batch, 2, 2))[:, :, ::2], rows
    return to_device(batch), rows


def permuted(rows: list[np.ndarray]) -> list[np.ndarray]:
    return [rows[i] for i in TWICE]


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[list[np.ndarray]], Any]]] = {
    "axis inserted": (lambda x: fn.expand_dims(x, axes=[0]), lambda rows: [[r[None] for r in rows]]),
    "axis inserted and dropped": (lambda x: fn.squeeze(fn.expand_dims(x, axes=[0]), axes=[0]), lambda rows: [rows]),
    "one axis": (lambda x: fn.reshape(x, shape=[-1]), lambda rows: [[r.reshape(-1) for r in rows]]),
    "pixels": (lambda x: fn.reshape(x, shape=[-1, 3]), lambda rows: [[r.reshape(-1, 3) for r in rows]]),
    "flipped pixels": (
        lambda x: fn.reshape(fn.flip(x), shape=[-1]), lambda rows: [[r[:, ::-1].reshape(-1) for r in rows]],
    ),
    "reshaped twice": (
        lambda x: fn.reshape(fn.reshape(x, shape=[-1]), shape=[-1, 1]), lambda rows: [[r.reshape(-1, 1) for r in rows]],
    ),
    "computed and reshaped": (
        lambda x: fn.reshape(x // 3, shape=[-1]), lambda rows: [[(r // 3).reshape(-1) for r in rows]],
    ),
    "reshaped and computed": (
        lambda x: fn.reshape(x, shape=[-1]) // 3, lambda rows: [[(r // 3).reshape(-1) for r in rows]],
    ),
    "one view twice": (lambda x: (y := fn.expand_dims(x, axes=[0]), y), lambda rows: [[r[None] for r in rows]] * 2),
    "a view and its source": (
        lambda x: (fn.reshape(x, shape=[-1]), x), lambda rows: [[r.reshape(-1) for r in rows], rows],
    ),
    "a view of a view": (
        lambda x: (y := fn.expand_dims(x, axes=[0]), fn.expand_dims(y, axes=[0])),
        lambda rows: [[r[None] for r in rows], [r[None, None] for r in rows]],
    ),
    "a view with another reader": (
        lambda x: (y := fn.reshape(x // 3, shape=[-1]), y * 2),
        lambda rows: [[(r // 3).reshape(-1) for r in rows], [(r // 3 * np.uint8(2)).reshape(-1) for r in rows]],
    ),
    "other rows": (lambda x: fn.permute_batch(x, indices=TWICE), lambda rows: [permuted(rows)]),
    "other rows and the batch": (
        lambda x: (fn.permute_batch(x, indices=TWICE), x), lambda rows: [permuted(rows), rows],
    ),
    "views of other rows": (
        lambda x: fn.reshape(fn.permute_batch(fn.expand_dims(x, axes=[0]), indices=TWICE), shape=[-1]),
        lambda rows: [[r.reshape(-1) for r in permuted(rows)]],
    ),
    "other rows twice": (
        lambda x: fn.permute_batch(fn.permute_batch(x, indices=TWICE), indices=TWICE),
        lambda rows: [permuted(permuted(rows))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", ["dense", "ragged", "strided"])
@pytest.mark.parametrize("name", CASES)
def test_outputs_have_the_elements_of_their_views(name: str, form: str, to_device: Callable[[np.ndarray], Any]) -> None:
    define, expected = CASES[name]
    data, rows = fed(form, to_device)
    for got, want in zip(run(define, data), expected(rows), strict=True):
        for a, b in zip(got, want, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_reshaped_image_is_read_by_a_rotation(to_device: Callable[[np.ndarray], Any]) -> None:
    """A stage stores images for rotations in words of four bytes, but not through a reshape."""

    def define(x: Any) -> Any:
        computed = fn.slice(x, start=[0, 0, 0], shape=[12, 31, 3], axes=[0, 1, 2]) // 3
        computed = fn.cast(computed, dtype=types.UINT8)
        return fn.rotate(fn.reshape(computed, shape=[31, 12, 3]), angle=180)

    data, rows = fed("dense", to_device)
    (got,) = run(define, data)
    for a, row in zip(got, rows, strict=True):
        np.testing.assert_array_equal(a, (row[:12] // 3).reshape(31, 12, 3)[::-1, ::-1])


def test_a_shape_of_other_elements_fails_the_row(to_device: Callable[[np.ndarray], Any]) -> None:
    data, _ = fed("dense", to_device)
    with pytest.raises(DataError, match="expected a shape of 2139 elements as the input has, got one of 2138"):
        run(lambda x: fn.reshape(x, shape=[-1, 2]), data)


def test_a_list_of_too_few_rows_fails(to_device: Callable[[np.ndarray], Any]) -> None:
    data, _ = fed("dense", to_device)
    with pytest.raises(DataError, match=f"expected one index for each of the {ROWS} rows of the batch, got 3"):
        run(lambda x: fn.permute_batch(x, indices=[0, 1, 2]), data)
    with pytest.raises(DataError, match=f"row number {ROWS} is outside the batch of {ROWS} rows"):
        run(lambda x: fn.permute_batch(x, indices=[0, 1, 2, 3, ROWS]), data)
