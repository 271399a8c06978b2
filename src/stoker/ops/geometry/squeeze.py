# SPDX-License-Identifier: Apache-2.0
"""``squeeze``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value, ViewOp


class Squeeze(Operator, name="squeeze"):
    """Remove axes of extent 1. Input: any shape and type. Output: the same data without these axes. Moves no data."""

    takes_bfloat16 = True
    axes = arg("int", None, many=True, per_axis=True, doc="Axes to remove; negative ones count from the end.")
    axis_names = arg("str", None, doc="Axes to remove, by name.")
    cases = ({"axes": ()},)

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.images()

    def lower(self, c: Lowering, x: Value) -> Value:
        axes, names = c.const("axes"), c.const("axis_names")
        if (axes is None) == (names is None):
            raise ArgumentError("`squeeze`: expected one of `axes` and `axis_names`")
        missing = [n for n in names or "" if n not in x.layout]
        if missing:
            raise ArgumentError(f"`squeeze`: expected names of axes of {x.layout!r}, got {missing[0]!r}")
        asked = [x.layout.index(n) for n in names] if names is not None else list(axes)
        at = {a % x.rank for a in asked if -x.rank <= a < x.rank}
        if len(at) != len(asked):
            raise ArgumentError(f"`squeeze`: expected different axes of a tensor with {x.rank} axes, got {asked}")
        for a in at:
            c.require(ex.equal(x.shape[a], 1), "expected axes of extent 1, got {0}", x.shape[a])
        return c.view(x, [ViewOp("drop", a) for a in sorted(at, reverse=True)])

    def reference(self, row: RowContext, x: Any) -> Any:
        if row["axis_names"] is not None:
            return np.squeeze(x, tuple(row.layout.index(n) for n in row["axis_names"]))
        return np.squeeze(x, tuple(int(a) for a in row["axes"]))
