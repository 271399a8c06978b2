# SPDX-License-Identifier: Apache-2.0
"""``cast``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, arg
from ...contract.step import Value
from ...contract.types import DType


class Cast(Operator, name="cast"):
    """Change the element type. Input: any shape and type. Output: the same shape in ``dtype``.

    Floats round half to even, values outside of the range saturate, NaN becomes 0; anything but 0 is True.
    """

    kind = "pointwise"
    dtype = arg("dtype", doc="Element type of the output.")
    cases = ({"dtype": "uint8"}, {"dtype": "float32"}, {"dtype": "int16"}, {"dtype": "bool"}, {"dtype": "float16"})

    def lower(self, c: Lowering, x: Value) -> Value:
        return c.cast(x, c.const("dtype"))

    def reference(self, row: RowContext, x: Any) -> Any:
        return cast_array(x, row["dtype"])


def cast_array(x: Any, dtype: DType) -> Any:
    """The conversion rule in NumPy."""
    x = np.asarray(x)
    if dtype == DType.BOOL:
        return x != 0
    if dtype.is_float:
        with np.errstate(over="ignore"):
            return x.astype(dtype.numpy)
    if x.dtype == np.bool_:
        return x.astype(dtype.numpy)
    info = np.iinfo(dtype.numpy)
    if x.dtype.kind == "f":
        r = np.rint(x.astype(np.float64))
        out = np.where(np.isnan(r), 0, r)
        low, high = out <= float(info.min), out >= float(info.max)
        safe = np.where(low | high, 0, out).astype(dtype.numpy)
        return np.where(low, info.min, np.where(high, info.max, safe)).astype(dtype.numpy)
    low = x < info.min if x.dtype.kind == "i" else np.zeros(x.shape, bool)
    high = x > info.max
    return np.where(low, info.min, np.where(high, info.max, x.astype(dtype.numpy))).astype(dtype.numpy)
