# SPDX-License-Identifier: Apache-2.0
"""``cast``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.step import Value
from ...contract.streaming import StreamRule, elementwise
from ...contract.types import DType


class Cast(Operator, name="cast"):
    """Change the element type. Input: any shape and type. Output: the same shape in ``dtype``.

    Floats round half to even, values outside the range saturate, NaN becomes 0, and every number except 0 becomes True.
    NumPy has no bfloat16: such arrays have its bits as uint16.
    """

    gives_bfloat16 = takes_bfloat16 = True
    dtype = arg("dtype", doc="Element type of the output.")
    cases = ({"dtype": "uint8"}, {"dtype": "float32"}, {"dtype": "int16"}, {"dtype": "bool"}, {"dtype": "float16"},
             {"dtype": "bfloat16"})  # fmt: skip

    def lower(self, c: Lowering, x: Value) -> Value:
        return c.cast(x, c.const("dtype"))

    @classmethod
    def stream_rule(cls, args: Mapping[str, Any], x: Spec, axis: int) -> StreamRule:
        return elementwise(axis)

    def reference(self, row: RowContext, x: Any) -> Any:
        return cast_array(x, row["dtype"])


def cast_array(x: Any, dtype: DType) -> Any:
    """Apply the conversion rule in NumPy."""
    x = np.asarray(x)
    if dtype == DType.BFLOAT16:
        return _bfloat16(x)
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


def number_in(value: float, dtype: DType) -> float:
    """Return ``value`` converted to ``dtype``."""
    array = cast_array(np.float64(value), dtype)
    if dtype == DType.BFLOAT16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.item()  # type: ignore[no-any-return]


def _bfloat16(x: Any) -> Any:
    """Return the bits of the nearest numbers with 8 bits of precision. Ties go to even."""
    with np.errstate(over="ignore", invalid="ignore"):
        exact = np.asarray(x, np.float64)
        below = exact.astype(np.float32)
        # Round to odd: truncate to float32 and set the last bit if bits were lost. The final rounding is then exact.
        below = np.where(np.abs(below) > np.abs(exact), np.nextafter(below, np.float32(0)), below)
    bits = below.astype(np.float32).view(np.uint32) | (np.isfinite(below) & (below != exact))
    bits = bits.astype(np.uint64)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    return np.where(np.isnan(exact), bits >> 16 | 0x40, rounded).astype(np.uint16)
