# SPDX-License-Identifier: Apache-2.0
"""``expand_dims``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value, ViewOp


class ExpandDims(Operator, name="expand_dims"):
    """Insert axes of extent 1. Input: any shape and type. Output: the same data with the new axes. Moves no data."""

    takes_bfloat16 = True
    axes = arg(
        "int",
        many=True,
        per_axis=True,
        doc="Positions of the new axes in the output; negative ones count from its end.",
    )
    new_axis_names = arg("str", "", doc="Names of the new axes, one per element of `axes`.")
    cases = ({"axes": (0,)}, {"axes": (0, 2)}, {"axes": (3, 0)}, {"axes": (-1,)})

    def lower(self, c: Lowering, x: Value) -> Value:
        axes, names = c.const("axes"), c.const("new_axis_names")
        rank = x.rank + len(axes)
        at = [a % rank for a in axes if -rank <= a < rank]
        if len(set(at)) != len(axes):
            raise ArgumentError(f"`expand_dims`: expected `axes` as different numbers below {rank}, got {list(axes)}")
        if names and len(names) != len(axes):
            raise ArgumentError(f"`expand_dims`: expected {len(axes)} names in `new_axis_names`, got {names!r}")
        if names and x.rank and not x.layout:
            raise ArgumentError(
                "`expand_dims`: `new_axis_names` needs an input whose axes have names; give it a layout"
            )
        order = sorted(range(len(at)), key=at.__getitem__)
        layout = list(x.layout)
        for i in order:
            layout.insert(at[i], names[i : i + 1])
        return c.view(x, [ViewOp("insert", at[i]) for i in order], "".join(layout) if names else "")

    def reference(self, row: RowContext, x: Any) -> Any:
        return np.expand_dims(x, tuple(row["axes"]))
