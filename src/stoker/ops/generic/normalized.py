# SPDX-License-Identifier: Apache-2.0
"""``_normalized``: `normalize` with known statistics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import Px, binary, load, select, unary, uniform
from ...contract.step import Value
from ...contract.types import DType
from .cast import cast_array


class Normalized(Operator, name="_normalized"):
    """Normalize with a mean and a variance, or with ``given`` a standard deviation. Inputs: the data and the two, which
    are broadcast.
    """

    hidden = True
    gives_bfloat16 = takes_bfloat16 = True
    inputs = (3, 3)
    shift = arg("float", 0.0, doc="Added to the result.")
    scale = arg("float", 1.0, doc="Factor of the result.")
    epsilon = arg("float", 0.0, doc="Added to the variance.")
    given = arg("bool", False, doc="The third input is a standard deviation.")
    dtype = arg("dtype", DType.FLOAT, doc="Element type of the output.")
    cases = ({}, {"given": True, "scale": 64.0, "shift": 128.0, "dtype": "uint8"}, {"epsilon": 2.0})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        spreads = np.array([0, 4, 2.5], np.float32).reshape(1, 1, 3)
        return [(x, np.float32(100.25 + i), spreads) for i, (x,) in enumerate(samples.images())]

    def lower(self, c: Lowering, x: Value, mean: Value, spread: Value) -> Value:
        ones = (ex.is_static(n) and n == 1 for n in spread.shape)
        shared = spread.rank < x.rank or any(ones)
        if shared:  # by several elements, each of which would take a root and a division
            spread = c.pointwise([spread], self._factor(c, load(spread.dtype)))
        value, middle, last = (load(v.dtype, i).cast(DType.FLOAT) for i, v in enumerate((x, mean, spread)))
        result = (value - middle) * (last if shared else self._factor(c, last)) + uniform(c.const("shift"))
        return c.pointwise([x, mean, spread], result.cast(c.const("dtype")))

    @staticmethod
    def _factor(c: Lowering, spread: Px) -> Px:
        width = spread.cast(DType.FLOAT)
        variance = (width * width if c.const("given") else width) + uniform(c.const("epsilon"))
        factor = uniform(c.const("scale")) / unary("sqrt", variance)
        return factor if c.const("given") else select(binary("gt", variance, 0), factor, uniform(0))

    def reference(self, row: RowContext, x: Any, mean: Any, spread: Any) -> Any:
        f32 = np.float32
        value, middle, width = (np.asarray(v).astype(f32) for v in (x, mean, spread))
        variance = (width * width if row["given"] else width) + f32(row["epsilon"])
        with np.errstate(all="ignore"):
            factor = f32(row["scale"]) / np.sqrt(variance)
            if not row["given"]:
                factor = np.where(variance > 0, factor, f32(0))
            return cast_array((value - middle) * factor + f32(row["shift"]), row["dtype"])
