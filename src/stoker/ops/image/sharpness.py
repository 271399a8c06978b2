# SPDX-License-Identifier: Apache-2.0
"""``sharpness``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import binary, load, select, unary, uniform
from ...contract.step import Value
from ...contract.types import DType
from ..geometry._axes import each_frame
from ._correlation import correlate_array

_TYPES = (DType.UINT8, DType.UINT16, DType.FLOAT)
_WINDOW = np.array([[1, 1, 1], [1, 5, 1], [1, 1, 1]], np.float32) * np.float32(1 / 13)
_WINDOW[1, 1] = np.float32(5 / 13)


class Sharpness(Operator, name="sharpness"):
    """Change the sharpness of images. Input: uint8, uint16 or float32, HW, HWC, CHW or these with a leading F. Output:
    the same.

    ``x + (1 - factor) * (smooth - x)``, where ``smooth`` averages a pixel, five times, and its eight neighbours. Pixels
    of the edges stay as they are. For integers ``smooth`` is rounded, and the result's fraction is cut off. These are
    torchvision's ``adjust_sharpness``; its sums have another order, so that integers may differ by 1.
    """

    factor = arg("float", per_row=True, doc="0: smooth, 1: unchanged, 2: sharp; at least 0.")
    cases = ({"factor": 2.0}, {"factor": 0.3})

    def lower(self, c: Lowering, x: Value) -> Value:
        c.expect(x.dtype in _TYPES, f"expected uint8, uint16 or float32, got {x.dtype}; cast it first")
        factor = c.scalar("factor")
        c.require(
            ex.both(ex.isfinite(factor), factor >= 0), "expected a finite `factor` of at least 0, got {0}", factor
        )
        smooth = c.apply("filter", x, c.apply("_constant", value=_WINDOW), dtype=DType.FLOAT, border="clamp")
        own, average = load(x.dtype).cast(DType.FLOAT), load(DType.FLOAT, 1)
        average = average if x.dtype == DType.FLOAT else unary("round", average)
        blended = own + (average - own) * uniform(1 - factor)
        bounded = binary("min", binary("max", blended, 0), x.dtype.positive_range)
        inner = uniform(1, DType.BOOL)
        for name in "HW":
            at = c.coordinate(x, name)
            inside = binary("and", binary("ge", at, 1), binary("lt", at, c.extent(x, name) - 1))
            inner = binary("and", inner, inside)
        whole = bounded if x.dtype == DType.FLOAT else unary("trunc", bounded).cast(x.dtype)
        return c.pointwise([x, smooth], select(inner, whole, load(x.dtype)))

    def reference(self, row: RowContext, x: Any) -> Any:
        factor, full = row.number("factor"), np.float32(DType.of(x.dtype).positive_range)
        if not factor >= 0:
            raise ValueError("expected a factor of at least 0")

        def sharpened(frame: Any) -> Any:
            smooth = correlate_array(frame, _WINDOW, 1, 1, frame.shape[:2], "clamp", 0.0)
            smooth = np.rint(smooth) if x.dtype.kind == "u" else smooth
            own = frame.astype(np.float32)
            mixed = np.clip(own + (smooth - own) * np.float32(1 - factor), np.float32(0), full)
            out = np.array(frame)
            out[1:-1, 1:-1] = mixed[1:-1, 1:-1].astype(x.dtype)
            return out

        return each_frame(x, row.layout, sharpened)
