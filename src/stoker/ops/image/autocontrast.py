# SPDX-License-Identifier: Apache-2.0
"""``autocontrast``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import binary, load, select, unary, uniform
from ...contract.step import Value
from ...contract.types import DType

_TYPES = (DType.UINT8, DType.UINT16, DType.FLOAT)


class Autocontrast(Operator, name="autocontrast"):
    """Stretch the values of each channel to the type's full range. Input: images of uint8, uint16 or float32, with axes
    H and W. Output: the same.

    The smallest element of a channel becomes 0, the largest one ``full``: the type's largest number, 1 for floats.
    Channels of one value stay as they are. Frames of a video are independent. Equal to torchvision's ``autocontrast``,
    bit for bit; as there, fractions are cut off.
    """

    cases = ({},)

    def lower(self, c: Lowering, x: Value) -> Value:
        c.expect(x.dtype in _TYPES, f"expected uint8, uint16 or float32, got {x.dtype}; cast it first")
        axes = [c.axis(x, name) for name in "HW"]
        low, high = (c.apply(f"reductions.{what}", x, axes=tuple(axes), keep_dims=True) for what in ("min", "max"))
        value, least, most = (load(x.dtype, port).cast(DType.FLOAT) for port in range(3))
        # As torchvision: the span is multiplied by the reciprocal of `full`, then divides.
        span = (most - least) * float(np.float32(1.0 / x.dtype.positive_range))
        flat = binary("eq", most, least)
        zero, one, full = (uniform(n) for n in (0, 1, x.dtype.positive_range))
        scaled = (value - select(flat, zero, least)) / select(flat, one, span)
        # The order of the operands keeps a NaN.
        bounded = binary("min", binary("max", scaled, zero), full)
        stretched = bounded if x.dtype == DType.FLOAT else unary("trunc", bounded).cast(x.dtype)
        return c.pointwise([x, low, high], stretched)

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        axes = (layout.index("H"), layout.index("W"))
        full = DType.of(x.dtype).positive_range
        value = x.astype(np.float32)
        least, most = value.min(axes, keepdims=True), value.max(axes, keepdims=True)
        flat = least == most
        with np.errstate(all="ignore"):
            span = np.where(flat, np.float32(1), (most - least) * np.float32(1.0 / full))
            scaled = (value - np.where(flat, np.float32(0), least)) / span
        return np.clip(scaled, np.float32(0), np.float32(full)).astype(x.dtype)
