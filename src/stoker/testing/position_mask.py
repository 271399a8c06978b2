# SPDX-License-Identifier: Apache-2.0
"""Operators for the laws whose results depend on the position of an element."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contract.argument import arg
from ..contract.errors import ArgumentError
from ..contract.lowering import Lowering
from ..contract.operator import Operator, RowContext
from ..contract.pixel import Px, binary, load, select, uniform
from ..contract.step import Value
from ..contract.types import DType


class PositionMask(Operator, name="testing.position_mask"):
    """Keep elements in a half plane of two axes, and set the others to `fill`; or add a gradient to all.

    Input: an array with named axes. Output: the same type and axes; with a gradient, float32.
    """

    hidden = True
    axes = arg("str", doc="Two of the axes; they may be one.")
    first = arg("int", 1, per_row=True, doc="Factor of the coordinate along the first axis.")
    second = arg("int", 0, per_row=True, doc="Factor of the coordinate along the second axis.")
    limit = arg("int", 1, per_row=True, doc="Elements whose sum is below are kept.")
    fill = arg("float", 0.0, doc="Number in place of the others.")
    gradient = arg("bool", False, doc="Add the sum in place of comparing it.")
    by_channel = arg("bool", False, doc="Use an expression for each channel, which also adds the channel before it.")

    def lower(self, c: Lowering, x: Value) -> Value:
        at = c.layout(x).find("C")
        if not c.const("by_channel") or at < 0:
            return c.pointwise([x], self._placed(c, x, load(x.dtype)))
        count = x.shape[at]
        if not isinstance(count, int):
            raise ArgumentError("expected a known number of channels for an expression for each")
        loads = [binary("max", load(x.dtype, 0, k), load(x.dtype, 0, max(k - 1, 0))) for k in range(count)]
        return c.channelled(x, [self._placed(c, x, p) for p in loads], at)

    def _placed(self, c: Lowering, x: Value, p: Px) -> Px:
        a, b = (c.coordinate(x, name) for name in c.const("axes"))
        numbers = [c.scalar(name) for name in ("first", "second", "limit")]
        if "F" in c.const("axes") and any(map(c.differs_by_frame, numbers)):
            raise ArgumentError("a reference of one frame does not know the frame's number")
        first, second, limit = (uniform(n, DType.INT32) for n in numbers)
        total = a * first + b * second
        if c.const("gradient"):
            return p.cast(DType.FLOAT) + total.cast(DType.FLOAT)
        return select(binary("lt", total, limit), p, uniform(c.const("fill"), x.dtype))

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        at = layout.find("C")
        if row["by_channel"] and at >= 0:
            before = np.take(x, np.maximum(np.arange(x.shape[at]) - 1, 0), at)
            x = np.where(x < before, before, x)
        total = np.zeros(x.shape, np.int64)
        for name, factor in zip(row["axes"], ("first", "second"), strict=True):
            i = layout.index(name)
            along = np.arange(x.shape[i]).reshape([-1 if k == i else 1 for k in range(x.ndim)])
            total += along * _by_frame(row[factor], x.ndim)
        if row["gradient"]:
            return x.astype(np.float32) + total.astype(np.float32)
        return np.where(total < _by_frame(row["limit"], x.ndim), x, np.asarray(row["fill"]).astype(x.dtype))


def _by_frame(number: Any, rank: int) -> Any:
    """Return a number, or one for each element of the leading axis."""
    array = np.asarray(number, np.int64)
    return array.reshape([-1, *[1] * (rank - 1)]) if array.size > 1 else int(array.reshape(-1)[0])
