# SPDX-License-Identifier: Apache-2.0
"""Filters, histograms and reductions: tests beyond the generated ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stoker import eager
from stoker.contract.errors import ArgumentError, DataError, UnsupportedError
from stoker.native import _native
from stoker.ops.image._correlation import correlate_array
from stoker.ops.reductions._reduction import summed


def picture(shape: tuple[int, ...] = (19, 23, 3)) -> Any:
    return np.random.default_rng(1).integers(0, 256, shape, np.uint8)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "uint16", "int16", "float16", "float32"])
@pytest.mark.parametrize("shape", [(1, 1, 3), (2, 3, 1), (90, 130, 3), (7, 41, 4)])
def test_every_instruction_set_filters_to_the_same_bits(dtype: str, shape: tuple[int, ...]) -> None:
    x = picture(shape).astype(dtype)
    weights = np.random.default_rng(2).normal(size=(5, 3)).astype(np.float32)
    results = {}
    before = _native.get_isa()
    try:
        for isa in _native.instruction_sets():
            _native.set_isa(isa)
            results[isa] = eager.filter(x, weights)
    finally:
        _native.set_isa(before)
    for found in results.values():
        np.testing.assert_array_equal(found, results["plain"])


@pytest.mark.parametrize("size", [1, 3, 5, 9])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_blurs_of_any_height_have_the_bits_of_the_reference(dtype: str, size: int) -> None:
    """Rows are summed several at a time: the last ones twice, and those of low images with rows beyond the edge."""
    window = np.exp(-((np.arange(size) - size // 2) ** 2) / (2 * 1.3**2))
    window = (window / window.sum()).astype(np.float32)
    before = _native.get_isa()
    try:
        for height in (*range(1, 14), 37):
            for width in (1, 13, 43):
                x = np.random.default_rng(height).uniform(0, 255, (height, width, 3)).astype(dtype)
                at = size // 2
                wide = correlate_array(x, window[None], 0, at, (height, width), "reflect_101")
                want = correlate_array(wide, window[:, None], at, 0, (height, width), "reflect_101")
                if dtype != "float32":
                    info = np.iinfo(dtype)
                    want = np.rint(want).clip(info.min, info.max).astype(dtype)
                for isa in _native.instruction_sets():
                    _native.set_isa(isa)
                    got = np.asarray(eager.gaussian_blur([x], sigma=1.3, window_size=size)[0])
                    np.testing.assert_array_equal(got, want)
    finally:
        _native.set_isa(before)


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_weights_of_zero_have_the_effect_of_the_reference(dtype: str) -> None:
    """Terms with them are left out only where that changes no bit: not where values are infinite or NaN."""
    x = picture((11, 70, 3)).astype(dtype)
    if dtype == "float32":
        x[5, 30] = np.inf, np.nan, -np.inf
    sparse = np.zeros((5, 7), np.float32)
    sparse[1, 2], sparse[1, 5], sparse[3, 6], sparse[4, 0] = 0.5, -0.0, -1.25, 2.0
    for weights in (sparse, np.zeros((3, 3), np.float32), np.eye(5, dtype=np.float32)[::-1].copy()):
        top, left = (n // 2 for n in weights.shape)
        want = correlate_array(x, weights, top, left, x.shape[:2], "reflect_101")
        found = eager.filter(x, weights, dtype="float32")
        np.testing.assert_array_equal(found, want)
        assert dtype != "float32" or np.isnan(found).any()
        assert not np.signbit(found[found == 0]).any()


def test_a_filter_in_a_border_of_a_value() -> None:
    x = np.full((3, 3, 1), 10, np.uint8)
    weights = np.full((3, 3), 1.0, np.float32)
    result = eager.filter(x, weights, np.uint8(2), border="constant")
    assert result[1, 1, 0] == 90
    assert result[0, 0, 0] == 4 * 10 + 5 * 2


def test_invalid_inputs_of_filters_are_refused() -> None:
    x, weights = picture(), np.ones((3, 3), np.float32)
    with pytest.raises(UnsupportedError, match="Cast it first"):
        eager.filter(x.astype(np.int32), weights)
    with pytest.raises(ArgumentError, match="filter of float32"):
        eager.filter(x, weights.astype(np.float64))
    with pytest.raises(ArgumentError, match="only with `border`"):
        eager.filter(x, weights, np.uint8(2))
    with pytest.raises((ArgumentError, DataError), match="inside of the filter"):
        eager.filter(x, weights, anchor=(3, 0))
    with pytest.raises((ArgumentError, DataError), match="inside of the image"):
        eager.filter(x, np.ones((30, 3), np.float32), mode="valid")
    with pytest.raises(ArgumentError, match="as `dtype`"):
        eager.filter(x, weights, dtype="int32")


def test_a_blur_keeps_a_plain_image_and_its_mean() -> None:
    plain = np.full((20, 20, 3), 77, np.uint8)
    np.testing.assert_array_equal(eager.gaussian_blur(plain, sigma=2.0), plain)
    impulse = np.zeros((21, 21, 1), np.float32)
    impulse[10, 10] = 1
    result = eager.gaussian_blur(impulse, sigma=(1.0, 2.0))[..., 0]
    assert result.sum() == pytest.approx(1, abs=1e-5)
    bell = np.exp(-(np.arange(-3, 4) ** 2) / 2)
    np.testing.assert_allclose(result[7:14].sum(1), bell / bell.sum(), rtol=1e-5)
    with pytest.raises((ArgumentError, DataError), match="odd `window_size`"):
        eager.gaussian_blur(plain, window_size=4)
    with pytest.raises((ArgumentError, DataError), match="above 0"):
        eager.gaussian_blur(plain)


def test_equalize_spreads_and_keeps_a_single_value() -> None:
    ramp = (np.arange(64, dtype=np.uint8).reshape(8, 8) // 4 + 100)[..., None]
    result = eager.equalize(ramp)
    assert (result.min(), result.max()) == (0, 255)
    assert np.array_equal(np.argsort(ramp, axis=None, kind="stable"), np.argsort(result, axis=None, kind="stable"))
    np.testing.assert_array_equal(eager.equalize(np.full((4, 4, 3), 9, np.uint8)), 9)
    with pytest.raises(UnsupportedError, match="expected uint8"):
        eager.equalize(ramp.astype(np.float32))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint64", "int64", "float32", "float64", "bool"])
def test_reductions_of_types(dtype: str) -> None:
    x = (picture() > 99).astype(bool) if dtype == "bool" else picture().astype(dtype)
    assert eager.reductions.min(x) == x.min()
    assert eager.reductions.max(x, axes=(0,)).tolist() == x.max(0).tolist()
    total = eager.reductions.sum(x)
    kind = np.dtype(dtype).kind
    assert total.dtype == {"u": np.uint64, "b": np.uint64, "i": np.int64}.get(kind, np.dtype(dtype))
    assert total == x.sum()


@pytest.mark.parametrize("count", [1, 31, 33, 4096, 4097, 40_000])
def test_sums_of_floats_are_taken_in_lanes(count: int) -> None:
    """The native order of sums, over views and rows of any length, equals that of the separately written reference."""
    x = np.random.default_rng(count).normal(0, 1e6, (count, 3)).astype(np.float64)
    want = summed(np.ascontiguousarray(x.T))
    np.testing.assert_array_equal(eager.reductions.sum(x, axes=(0,)), want)
    np.testing.assert_array_equal(eager.reductions.sum(x[:, 1]), want[1])
    assert count < 4096 or not np.array_equal(want, np.add.accumulate(x, 0)[-1]), "the numbers show a different order"


def test_zeros_keep_their_sign_and_halves_are_zero() -> None:
    x = np.array([0.0, -0.0, 0.0], np.float32)
    assert np.signbit(eager.reductions.min(x)) and not np.signbit(eager.reductions.max(-x))
    assert eager.reductions.mean(x, dtype="float16") == 0.0


def test_sums_of_64_bits_are_whole() -> None:
    x = np.array([2**63 - 5, 3], np.int64)
    assert eager.reductions.sum(x) == 2**63 - 2
    assert eager.reductions.max(x) == 2**63 - 5


def test_invalid_reductions_are_refused() -> None:
    x = picture()
    with pytest.raises(ArgumentError, match="axes in"):
        eager.reductions.max(x, axes=(3,))
    with pytest.raises(ArgumentError, match="got both"):
        eager.reductions.max(x, axes=(0,), axis_names="W")
    with pytest.raises(ArgumentError, match="layout"):
        eager.reductions.max(x, axis_names="F")
    with pytest.raises((ArgumentError, DataError), match="elements"):
        eager.reductions.variance(x, np.zeros(2, np.float32))
