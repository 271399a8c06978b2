# SPDX-License-Identifier: Apache-2.0
"""``reductions.max``."""

from __future__ import annotations

from typing import Any

from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.step import Value
from ...contract.types import DType
from ._reduction import Reduction


class Max(Reduction, name="reductions.max"):
    """The largest element along some axes. Input: any shape, any type but float16. Output: the same type. Exact."""

    what = "max"
    cases = ({}, {"axis_names": "HW"}, {"axes": (0, 1), "keep_dims": True}, {"axes": -1})

    def result_type(self, c: Lowering, x: Value) -> DType:
        return x.dtype

    def reduce(self, row: RowContext, values: Any, mean: Any) -> Any:
        return values.max(-1)
