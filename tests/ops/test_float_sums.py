# SPDX-License-Identifier: Apache-2.0
"""Sums of floats over one axis: vectors of all instruction sets add in the order of the reference."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from stoker import eager
from stoker.native import _native
from stoker.ops.reductions._reduction import summed

SHAPES = ((3, 5000), (4097, 37), (70, 80), (9000, 2), (0, 20))


@functools.cache
def references(shape: tuple[int, int]) -> tuple[np.ndarray, list[tuple[np.ndarray, ...]]]:
    """Return an array, and for each axis the sum, mean, mean of squares and variance of the reference."""
    x = np.random.default_rng(0).normal(0, 1e3, shape).astype(np.float32)
    if x.size > 50:
        x[-1, -1] = np.nan
    found = []
    for axis in (0, 1):
        rows: Any = np.moveaxis(x.astype(np.float64), axis, 1)
        count = rows.shape[1]
        with np.errstate(invalid="ignore"):  # no elements have no mean
            mean = summed(rows) / count
            spread = (summed((rows - mean[:, None]) ** 2) / count).astype(np.float32)
            found.append((summed(rows).astype(np.float32), mean, summed(rows**2) / count, spread))
    return x, found


@pytest.mark.parametrize("isa", ["avx512", "avx2", "plain"])
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_have_one_order(shape: tuple[int, int], isa: str) -> None:
    before = _native.get_isa()
    try:
        _native.set_isa(isa)
    except ValueError:
        pytest.skip(f"this processor lacks the instructions of the {isa} form")
    try:
        x, of_axes = references(shape)
        for axis, (total, mean, square, spread) in enumerate(of_axes):
            np.testing.assert_array_equal(eager.reductions.sum(x, axes=[axis]), total)
            got = eager.reductions.mean(x, axes=[axis], dtype="float64")
            np.testing.assert_array_equal(got, mean)
            np.testing.assert_array_equal(eager.reductions.mean_square(x, axes=[axis], dtype="float64"), square)
            np.testing.assert_array_equal(eager.reductions.variance(x, np.asarray(got), axes=[axis]), spread)
    finally:
        _native.set_isa(before)
