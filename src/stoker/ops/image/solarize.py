# SPDX-License-Identifier: Apache-2.0
"""``solarize``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import binary, load, select, uniform
from ...contract.step import Value
from ...contract.types import DType

_TYPES = (DType.UINT8, DType.UINT16, DType.FLOAT16, DType.FLOAT, DType.FLOAT64)


class Solarize(Operator, name="solarize"):
    """Invert all elements from a threshold on. Input: uint8, uint16 or floats of any shape. Output: the same.

    An element ``x >= threshold`` becomes ``full - x``, where ``full`` is the type's largest number, 1 for floats. Equal
    to torchvision's ``solarize``, bit for bit, and for bytes to Pillow's ``ImageOps.solarize``.
    """

    threshold = arg(
        "float", None, per_row=True, doc="Smallest number that is inverted; by default half: 128 for uint8, 0.5 for "
        "floats.",
    )  # fmt: skip
    cases = ({}, {"threshold": 200.0})

    def lower(self, c: Lowering, x: Value) -> Value:
        c.expect(x.dtype in _TYPES, f"expected uint8, uint16 or floats, got {x.dtype}; cast it first")
        threshold = c.scalar("threshold") if c.given("threshold") else _half(x.dtype)
        c.require(ex.isfinite(threshold), "expected a finite `threshold`, got {0}", threshold)
        own = load(x.dtype)
        # Type of the comparison: numbers of 16 bits are exact in float32, the threshold is rounded as torch rounds it.
        wide = DType.FLOAT64 if x.dtype == DType.FLOAT64 else DType.FLOAT
        inverted = binary("sub", uniform(x.dtype.positive_range, x.dtype), own)
        return c.pointwise([x], select(binary("ge", own.cast(wide), uniform(threshold, wide)), inverted, own))

    def reference(self, row: RowContext, x: Any) -> Any:
        own = DType.of(x.dtype)
        threshold = _half(own) if row["threshold"] is None else row.number("threshold")
        limit = np.float64(threshold) if x.dtype == np.float64 else np.float32(threshold)
        return np.where(x.astype(limit.dtype) >= limit, (own.positive_range - x).astype(x.dtype), x)


def _half(dtype: DType) -> float:
    return 0.5 if dtype.is_float else (dtype.positive_range + 1) / 2
