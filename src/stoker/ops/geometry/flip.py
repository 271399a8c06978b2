# SPDX-License-Identifier: Apache-2.0
"""``flip``."""

from __future__ import annotations

from typing import Any

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import IMAGES_AND_VOLUMES, Operator, RowContext
from ...contract.step import Value


class Flip(Operator, name="flip"):
    """Mirror along the axes W, H and D. Input: an image, video or volume, any type. Output: the same shape.

    Moves no data: the next operator reads (or stores) in the other direction.
    """

    default_layouts = IMAGES_AND_VOLUMES
    takes_bfloat16 = True
    horizontal = arg("int", 1, per_row=True, doc="Mirror left and right where not 0.")
    vertical = arg("int", 0, per_row=True, doc="Mirror top and bottom where not 0.")
    depthwise = arg("int", 0, per_row=True, doc="Mirror front and back where not 0.")
    cases = ({}, {"vertical": 1}, {"horizontal": 0, "vertical": 1}, {"horizontal": 0})

    def lower(self, c: Lowering, x: Value) -> Value:
        for name, axis in (("horizontal", "W"), ("vertical", "H"), ("depthwise", "D")):
            flag = c.scalar(name)
            if isinstance(flag, (int, float)) and not flag:
                continue
            if axis == "D" and axis not in c.layout(x):  # as in DALI: an image has no depth to flip
                continue
            x = c.flip(x, c.axis(x, axis), flag)
        return x

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        index = [slice(None)] * x.ndim
        for name, axis in (("horizontal", "W"), ("vertical", "H"), ("depthwise", "D")):
            if row.number(name) and (axis != "D" or axis in layout):
                index[layout.index(axis)] = slice(None, None, -1)
        return x[tuple(index)]
