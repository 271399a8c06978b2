# SPDX-License-Identifier: Apache-2.0
"""``shapes``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType


class Shapes(Operator, name="shapes"):
    """Return the shape of a tensor, one small tensor per row; ``x.shape()`` is the same. Output: ``(rank,)``."""

    devices = ("cpu",)
    takes_bfloat16 = True
    dtype = arg("dtype", DType.INT64, doc="Element type of the output.")
    type = arg("dtype", None, doc="Deprecated name of `dtype`.")
    cases = ({}, {"dtype": "float32"})

    def lower(self, c: Lowering, x: Value) -> Value:
        return c.numbers(list(x.shape), c.const("dtype") if c.const("type") is None else c.const("type"))

    def reference(self, row: RowContext, x: Any) -> Any:
        return np.asarray(x.shape, (row["dtype"] if row["type"] is None else row["type"]).numpy)
