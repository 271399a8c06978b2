# SPDX-License-Identifier: Apache-2.0
"""Axes of reductions that are named twice, and positions of extremes."""

from __future__ import annotations

import numpy as np
import pytest

from stoker import eager
from stoker.native import _native


@pytest.mark.parametrize("name", ["max", "min", "sum", "mean", "mean_square", "rms"])
def test_an_axis_that_is_named_twice_is_reduced_once(name: str) -> None:
    image = np.random.Generator(np.random.PCG64(3)).integers(0, 256, (20, 30, 3), np.uint8)
    reduce = getattr(eager.reductions, name)
    for names, once in (("HH", "H"), ("H" * 40, "H"), ("HWH", "HW")):
        got, wanted = (np.asarray(reduce(image, axis_names=n)) for n in (names, once))
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("shape", [(0, 5, 3), (4, 0, 3), (2, 5, 3), (1, 5, 3)])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "float32", "float64"])
@pytest.mark.parametrize("ddof", [0, 1, 2, 7])
def test_a_mean_of_too_few_elements_is_numpys(shape: tuple[int, ...], dtype: str, ddof: int) -> None:
    data = (np.arange(np.prod(shape)) % 50).reshape(shape).astype(dtype)
    average, wide = np.float32(3), data.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = wide.sum(0) / np.float64(shape[0])
        square = (wide**2).sum(0) / np.float64(shape[0])
        variance = ((wide - 3.0) ** 2).sum(0) / np.float64(max(shape[0] - ddof, 0))
        for got, wanted in (
            (eager.reductions.mean(data, axes=0), mean),
            (eager.reductions.mean_square(data, axes=0), square),
            (eager.reductions.rms(data, axes=0), np.sqrt(square)),
            (eager.reductions.variance(data, average, axes=0, ddof=ddof), variance),
            (eager.reductions.std_dev(data, average, axes=0, ddof=ddof), np.sqrt(variance)),
        ):
            np.testing.assert_array_equal(np.asarray(got), wanted.astype(np.float32))


@pytest.mark.parametrize("isa", _native.instruction_sets())
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_extremes_are_found_wherever_they_lie(isa: str, channels: int) -> None:
    before = _native.get_isa()
    pixels = 5 * 4096 // channels
    try:
        _native.set_isa(isa)
        for at in [*range(0, pixels, 397), pixels - 2, pixels - 1]:
            image = np.full((1, pixels, channels), 100, np.uint8)
            image[0, at] = np.arange(channels) + 200
            image[0, pixels - 1 - at, 0] = 7
            for name in ("max", "min"):
                got = np.asarray(getattr(eager.reductions, name)(image, axes=[0, 1]))
                np.testing.assert_array_equal(got, getattr(image, name)((0, 1)))
    finally:
        _native.set_isa(before)
