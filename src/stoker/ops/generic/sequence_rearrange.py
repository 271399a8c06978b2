# SPDX-License-Identifier: Apache-2.0
"""``sequence_rearrange``."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value, ViewOp
from .gather import gathered


class SequenceRearrange(Operator, name="sequence_rearrange"):
    """Put the frames of a video, or the elements along the first axis, in another order. Input: any type; the first
    axis is F or has no name. Output: as many elements as ``new_order`` has numbers; elements may repeat or be left out.

    A constant order with equal steps moves no data. Unlike DALI, a tensor with one axis is accepted.
    """

    takes_bfloat16 = True
    new_order = arg("int", many=True, per_row=True, doc="Numbers of the elements, from 0, in their new order.")
    cases = ({"new_order": (1, 0)}, {"new_order": (1, 1, 0, 1)}, {"new_order": (0, 1, 1, 0) * 3})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.images(layout="FHWC")

    def lower(self, c: Lowering, x: Value) -> Value:
        c.expect(x.rank > 0, "expected a tensor with an axis of elements, got a scalar")
        c.expect(not x.layout or x.layout[0] == "F", f"expected the first axis to be F, got layout {x.layout!r}")
        out = self._rearranged(c, x)
        out = c.relabel(out, x.layout) if out.layout != x.layout else out
        return c.with_properties(out, per_frame=True) if x.per_frame and not out.per_frame else out

    def _rearranged(self, c: Lowering, x: Value) -> Value:
        order = c.pass_on("new_order")
        count = c.length("new_order")
        if isinstance(order, Value):
            c.expect(order.rank <= 1, "expected `new_order` with one axis, got {0}", order.rank)
            c.expect(not order.per_frame, "expected `new_order` for the whole row, got one per frame")
        c.expect(count != 0, "expected at least one number as `new_order`, got an empty list")
        whole = c.with_properties(x, per_frame=False) if x.per_frame else x
        if isinstance(order, Value):
            text = "expected at least one number as `new_order`, got an empty list"
            c.require(1 if order.rank == 0 else order.shape[0] >= 1, text)
            numbers = c.view(order, [ViewOp("insert", 0)]) if order.rank == 0 else order
            return gathered(c, whole, numbers, argument="new_order")
        places = [int(at) for at in np.asarray(order).reshape(-1)]
        wide = max(map(abs, places))
        c.expect(wide < 1 << 63, f"expected numbers of int64 in `new_order`, got {wide}")
        c.require(min(places) >= 0, "expected numbers from 0 in `new_order`, got {0}", min(places))
        text = "expected `new_order` with numbers below {0}, the number of elements, got {1}"
        c.require(max(places) < x.shape[0], text, x.shape[0], max(places))
        steps = {b - a for a, b in pairwise(places)} or {1}
        if len(steps) == 1 and 0 not in steps:
            return c.view(x, [ViewOp("slice", 0, places[0], steps.pop(), len(places))])
        return gathered(c, whole, c.constant(np.array(places, np.int64)), argument="new_order")

    def reference(self, row: RowContext, x: Any) -> Any:
        order = np.asarray(row["new_order"]).reshape(-1)
        if not len(order):
            raise ArgumentError("expected at least one number as `new_order`, got an empty list")
        if (np.floor(order) != order).any():
            raise ArgumentError(f"expected whole numbers as `new_order`, got {order[np.floor(order) != order][0]}")
        if order.min() < 0:
            raise ArgumentError(f"expected numbers from 0 in `new_order`, got {order.min():g}")
        if order.max() >= len(x):
            text = f"expected `new_order` with numbers below {len(x)}, the number of elements, got {order.max():g}"
            raise ArgumentError(text)
        return np.asarray(x)[order.astype(np.int64)]
