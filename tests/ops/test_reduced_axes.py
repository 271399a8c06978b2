# SPDX-License-Identifier: Apache-2.0
"""Axes of reductions that are named twice."""

from __future__ import annotations

import numpy as np
import pytest

from stoker import eager


@pytest.mark.parametrize("name", ["max", "min", "sum", "mean", "mean_square", "rms"])
def test_an_axis_that_is_named_twice_is_reduced_once(name: str) -> None:
    image = np.random.Generator(np.random.PCG64(3)).integers(0, 256, (20, 30, 3), np.uint8)
    reduce = getattr(eager.reductions, name)
    for names, once in (("HH", "H"), ("H" * 40, "H"), ("HWH", "HW")):
        got, wanted = (np.asarray(reduce(image, axis_names=n)) for n in (names, once))
        np.testing.assert_array_equal(got, wanted)
