# SPDX-License-Identifier: Apache-2.0
"""Reductions of integers by columns, on every instruction set, against NumPy's integers."""

from __future__ import annotations

import numpy as np
import pytest

from stoker import eager

DTYPES = ["bool", "uint8", "int8", "uint16", "int16", "uint32", "int32"]
EXACT = {"sum": np.sum, "min": np.min, "max": np.max}


def extremes(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return random numbers among which the type's limits are frequent."""
    rng = np.random.default_rng(shape)
    if dtype == "bool":
        return rng.random(shape) < 0.7
    info = np.iinfo(dtype)
    x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.5, rng.choice(np.array([info.min, info.max], dtype), shape), x).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(7, 11, 3), (64, 64, 4), (33, 65, 2), (31, 200, 1), (300, 301, 3), (40, 50, 5)])
def test_columns(isa, dtype, shape):
    x = extremes(dtype, shape)
    wide = x.astype(np.int64)
    for view, number in ((x, wide), (x[::-1, 2:-1], wide[::-1, 2:-1]), (x.transpose(2, 0, 1), wide.transpose(2, 0, 1))):
        axes = (1, 2) if view.shape[0] == shape[2] and view.ndim == 3 and view is not x else (0, 1)
        for name, numpys in EXACT.items():
            result = np.asarray(getattr(eager.reductions, name)(view, axes=axes))
            np.testing.assert_array_equal(result.astype(np.int64), numpys(number, axis=axes), err_msg=name)
        mean = np.asarray(eager.reductions.mean(view, axes=axes))
        count = number.size // mean.size
        np.testing.assert_array_equal(mean, (number.sum(axes) / count).astype(np.float32))


# Lanes of 16 bits are added to the totals before they overflow, and those of squares before 32 bits do.
@pytest.mark.parametrize("value", [0, 255])
@pytest.mark.parametrize("name", ["sum", "mean", "mean_square", "rms"])
def test_long_runs_of_one_value(isa, name, value):
    x = np.full((3_000_001,), value, np.uint8)
    expected = {"sum": value * x.size, "mean": value, "mean_square": value**2, "rms": value}[name]
    assert np.asarray(getattr(eager.reductions, name)(x)) == expected


# More elements than one accumulator takes, of the widest vectors: 2^15 steps of four vectors.
@pytest.mark.parametrize(("name", "dtype"), [("sum", "uint16"), ("mean_square", "uint8")])
def test_runs_longer_than_an_accumulator_takes(isa, name, dtype):
    value = np.iinfo(dtype).max
    x = np.full(4 * (64 // np.dtype(dtype).itemsize) * 2**15 + 777, value, dtype)
    expected = value * x.size if name == "sum" else value**2
    assert np.asarray(getattr(eager.reductions, name)(x)) == expected


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_long_runs_of_the_least_number(isa, dtype):
    least = np.iinfo(dtype).min
    x = np.full((3, 400_001), least, dtype)
    assert np.asarray(eager.reductions.sum(x)) == least * x.size
    np.testing.assert_array_equal(np.asarray(eager.reductions.mean(x, axes=1)), np.full(3, least, np.float32))
