# SPDX-License-Identifier: Apache-2.0
"""Comparisons accept correct results and reject a planted error. A tolerance that never rejects proves nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.testing import assert_close, assert_exact, assert_rows
from stoker.testing.tolerances import distance

DTYPES = ("bool", "uint8", "int16", "int32", "uint64", "float16", "float32", "float64")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (4, 5)])
def test_equal_arrays_are_equal(dtype: str, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    assert_exact(x, x.copy())
    assert_close(x, x.copy(), atol=0, bound=0)


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_one_changed_bit_is_detected(dtype: str, data: st.DataObject) -> None:
    x = np.arange(12).astype(dtype).reshape(3, 4)
    y = x.copy()
    at = data.draw(st.integers(0, 11))
    raw = y.reshape(-1).view(f"u{y.dtype.itemsize}")
    bit = 0 if dtype == "bool" else data.draw(st.integers(0, 8 * y.dtype.itemsize - 1))
    raw[at] ^= np.asarray(1 << bit, raw.dtype)
    place = rf"\[{at // 4}, {at % 4}\]"
    with pytest.raises(AssertionError, match=f"1 of 12 elements differ, the first at {place}"):
        assert_exact(y, x)


def test_types_and_shapes_must_be_the_same() -> None:
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(AssertionError, match="expected float32, got float64"):
        assert_exact(x.astype(np.float64), x)
    with pytest.raises(AssertionError, match=r"expected the shape \(2, 3\), got \(3, 2\)"):
        assert_exact(x.T, x)
    with pytest.raises(AssertionError, match=r"expected the shape \(2, 3\), got \(1, 2, 3\)"):
        assert_close(x[None], x, atol=1, bound=1)


def test_zeros_have_signs_and_nans_need_not() -> None:
    with pytest.raises(AssertionError):
        assert_exact(np.float32(-0.0), np.float32(0.0))
    assert_exact(np.float32(-np.nan), np.float32(np.nan))
    with pytest.raises(AssertionError):
        assert_exact(np.float32(-np.nan), np.float32(np.nan), nan_bits=True)
    with pytest.raises(AssertionError):
        assert_exact(np.float32(np.nan), np.float32(1))


def test_views_compare_by_their_elements() -> None:
    x = np.arange(24, dtype=np.int16).reshape(4, 6)
    assert_exact(x[::2, ::-1], x[::2, ::-1].copy())
    with pytest.raises(AssertionError):
        assert_exact(x[::2, ::-1], x[::2])


def test_close_has_a_share_and_a_hard_bound() -> None:
    want = np.zeros(100, np.float32)
    got = want.copy()
    got[:3] = 1.5
    assert_close(got, want, atol=1, bound=2, share=0.97)
    with pytest.raises(AssertionError, match=r"expected 98.0000% of the elements within 1, got 97.0000%"):
        assert_close(got, want, atol=1, bound=2, share=0.98)
    got[50] = 2.5
    with pytest.raises(AssertionError, match=r"expected every element within 2; 1 of 100 .* at \[50\]"):
        assert_close(got, want, atol=1, bound=2, share=0.5)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_no_tolerance_covers_infinities_and_nans(wrong: float) -> None:
    want = np.ones(4)
    got = want.copy()
    got[2] = wrong
    for a, b in ((got, want), (want, got)):
        with pytest.raises(AssertionError, match="expected every element within"):
            assert_close(a, b, atol=1e300, bound=1e300)
    assert_close(got, got.copy(), atol=0, bound=0)


def test_unsigned_differences_do_not_wrap() -> None:
    a, b = np.asarray([0], np.uint8), np.asarray([255], np.uint8)
    assert distance(a, b)[0] == distance(b, a)[0] == 255
    with pytest.raises(AssertionError):
        assert_close(a, b, atol=1, bound=254)


@pytest.mark.parametrize(
    "arguments", [{"atol": 2, "bound": 1}, {"atol": -1, "bound": 1}, {"atol": 0, "bound": 1, "share": 2}]
)
def test_tolerances_that_mean_nothing_are_refused(arguments: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="expected 0 <= atol <= bound"):
        assert_close(np.zeros(1), np.zeros(1), **arguments)


def test_rows_are_named() -> None:
    rows: list[Any] = [np.zeros(2), np.ones(3)]
    assert_rows(rows, rows)
    with pytest.raises(AssertionError, match="expected 2 rows, got 1"):
        assert_rows(rows[:1], rows)
    with pytest.raises(AssertionError, match="batch, row 1: expected the same bits"):
        assert_rows([np.zeros(2), np.zeros(3)], rows)
    assert_rows([np.zeros(2), np.zeros(3)], rows, atol=1, bound=1)
