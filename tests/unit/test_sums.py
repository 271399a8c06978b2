# SPDX-License-Identifier: Apache-2.0
"""Sums in the order of their numbers."""

from __future__ import annotations

from stoker.contract.sums import sum_in_order
from stoker.ops.transforms._transform import compose_matrices


def test_rounding_is_not_compensated() -> None:
    assert sum_in_order([1e16, 1.0, 1.0, -1e16]) == 0.0  # Python 3.12's `sum` returns 2.0
    assert sum_in_order([]) == 0.0
    assert sum_in_order([2.0], 1.0) == 3.0


def test_matrices_are_the_same_with_every_python() -> None:
    tiny = 2.0**-53
    ((x, *_), *_) = compose_matrices([[1.0, 1.0, 1.0, 0.0]] * 3, [[1.0, 0.0, 0.0, 0.0], [tiny] * 4, [tiny] * 4])
    assert x == 1.0  # compensated: 1 + 2**-52
