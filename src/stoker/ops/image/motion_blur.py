# SPDX-License-Identifier: Apache-2.0
"""``motion_blur``."""

from __future__ import annotations

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator
from ...contract.step import Value
from ..geometry._borders import BORDERS


class MotionBlur(Operator, name="motion_blur"):
    """Blur images as if the camera had moved along a line. Input: HW, HWC, CHW or these with a leading F; 8 and 16
    bits, float32. Output: the same layout.

    Each pixel becomes the mean over a line through it, ``size`` pixels long. A pixel of the window has the weight of
    the part of a line, one pixel wide, that it covers, falling linearly with the distance from the line; with
    `direction` weights rise along it. The weights sum to 1. Sums are those of `filter`.
    """

    gives_bfloat16 = takes_bfloat16 = True
    exactness = "the same bits on every machine"
    size = arg("int", 9, per_row=True, doc="Length of the line and side of the window in pixels: odd, 1 to 255.")
    angle = arg("float", 0.0, per_row=True, doc="Angle of the line in degrees, counterclockwise; 0: horizontal.")
    direction = arg(
        "float", 0.0, per_row=True,
        doc="Slope of the weights along the line, -1 to 1. 0: all equal; 1: from about 0 to twice the mean.",
    )  # fmt: skip
    border = arg(
        "str", "reflect_101", choices=tuple(name for name in BORDERS if name != "constant"),
        doc="Pixels beyond the edges, as for `filter`.",
    )  # fmt: skip
    dtype = arg("dtype", None, doc="Element type of the output: float32, or the input's.")
    cases = (
        {"size": 5},
        {"size": 7, "angle": 30.0, "direction": 0.5},
        {"size": 3, "angle": -90.0, "direction": -1.0, "border": "clamp", "dtype": "float32"},
        {"size": 1},
    )

    def compose(self, c: Lowering, x: Value) -> Value:
        line = {name: c.pass_on(name) for name in ("size", "angle", "direction")}
        raw = c.apply("_motion_weights", x, **line)
        weights = c.apply("_arithmetic", raw, c.apply("reductions.sum", raw, keep_dims=True), op="div")
        out: Value = c.apply("filter", x, weights, border=c.const("border"), dtype=c.const("dtype"))
        return out
