# SPDX-License-Identifier: Apache-2.0
"""``reductions.max``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.step import Value
from ...contract.types import DType
from ._reduction import Reduction, extremes


class Max(Reduction, name="reductions.max"):
    """Return the largest element along some axes. Input: any shape and type. Output: the same type.

    Exact. -0 is below 0. If there is a NaN, the result is NaN. That of no elements is the type's smallest value, for
    floats minus infinity.
    """

    what = "max"
    cases = ({}, {"axis_names": "HW"}, {"axes": (0, 1), "keep_dims": True}, {"axes": -1})

    def result_type(self, c: Lowering, x: Value) -> DType:
        return x.dtype

    def reduce(self, row: RowContext, values: Any, mean: Any) -> Any:
        reduced = values.max(-1, initial=extremes(values.dtype)[0])
        if DType.of(values.dtype).is_float:  # NumPy may return either zero
            there = ((values == 0) & ~np.signbit(values)).any(-1)
            reduced = np.where((reduced == 0) & there, values.dtype.type(0.0), reduced)
        return reduced
