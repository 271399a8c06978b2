# SPDX-License-Identifier: Apache-2.0
"""``transpose``."""

from __future__ import annotations

from typing import Any

from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value


class Transpose(Operator, name="transpose"):
    """Reorder the axes. Input: any shape and type. Output: axis i is the input's axis ``perm[i]``.

    Moves no data: the next operator reads (or stores) in the other order.
    """

    takes_bfloat16 = True
    perm = arg("int", None, many=True, per_axis=True, doc="Order of the input's axes; by default reversed.")
    transpose_layout = arg("bool", True, doc="Whether the axes' names move along; otherwise they stay in place.")
    output_layout = arg("str", None, doc="Names of the output's axes; wins over `transpose_layout`.")
    cases = (
        {"perm": (2, 0, 1)},
        {},
        {"perm": (1, 0, 2), "transpose_layout": False},
        {"perm": (2, 1, 0), "output_layout": "ABC"},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        perm = c.const("perm")
        order = list(range(x.rank))[::-1] if perm is None else list(perm)
        if sorted(order) != list(range(x.rank)):
            raise ArgumentError(f"`transpose`: expected `perm` as an order of {x.rank} axes, got {order}")
        layout = c.const("output_layout")
        if layout is None:
            layout = "".join(x.layout[i] for i in order) if x.layout and c.const("transpose_layout") else x.layout
        elif len(layout) != x.rank:
            raise ArgumentError(f"`transpose`: expected `output_layout` with {x.rank} axes, got {layout!r}")
        return c.permute(x, order, layout)

    def reference(self, row: RowContext, x: Any) -> Any:
        return x.transpose(row["perm"])
