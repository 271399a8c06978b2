# SPDX-License-Identifier: Apache-2.0
"""``water``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.pixel import Px, binary, coordinate, load, select, unary, uniform
from ...contract.step import Value, ViewOp
from ...contract.types import DType
from ._map import MaskedMapArguments, height_and_width, masked, masked_reference, pixel_places

_NUMBERS = ("ampl_x", "ampl_y", "freq_x", "freq_y", "phase_x", "phase_y")


class Water(MaskedMapArguments, name="water"):
    """Show an image as under water. Input: images of up to 32 bits an element, HW, HWC, CHW or these with a leading F.
    Output: the same.

    Pixel (x, y) shows the source at ``x + ampl_x sin(freq_x y + phase_x)``, ``y + ampl_y cos(freq_y x + phase_y)``, in
    float32. The bits are DALI's, which ignores a ``mask`` that is a constant.
    """

    exactness = "the same bits on every machine; the reference's sine and cosine may differ in the last place"
    ampl_x = arg("float", 10.0, per_row=True, doc="Height of the waves along x, in pixels.")
    ampl_y = arg("float", 10.0, per_row=True, doc="Height of the waves along y, in pixels.")
    freq_x = arg("float", math.tau / 128, per_row=True, doc="Radians per pixel of the waves along x.")
    freq_y = arg("float", math.tau / 128, per_row=True, doc="Radians per pixel of the waves along y.")
    phase_x = arg("float", 0.0, per_row=True, doc="Phase of the waves along x, in radians.")
    phase_y = arg("float", 0.0, per_row=True, doc="Phase of the waves along y, in radians.")
    cases = (
        {"ampl_x": 3.0, "ampl_y": 2.0, "freq_x": 0.7, "phase_y": 0.3},
        {"ampl_x": 2.5, "interp_type": "INTERP_LINEAR", "fill_value": 7.0},
        {"ampl_y": 3.0, "freq_y": 0.4, "interp_type": "INTERP_CUBIC", "fill_value": 7.0},
        {"mask": 0},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        numbers: dict[str, Px] = {}
        for name in _NUMBERS:
            number = c.scalar(name)
            c.require(ex.absolute(number) < 1e6, f"expected a `{name}` below a million, got {{0}}", number)
            numbers[name] = uniform(number)
        down, across = pixel_places()
        height, width = height_and_width(c, x)
        # A line has one sine, and a column one cosine; they are one tensor.
        place = coordinate(0)
        sine = unary("sin", numbers["freq_x"] * place.cast(DType.FLOAT) + numbers["phase_x"])
        column = binary("sub", place, uniform(height, DType.INT32)).cast(DType.FLOAT)
        cosine = unary("cos", numbers["freq_y"] * column + numbers["phase_y"])
        is_line = binary("lt", place, uniform(height, DType.INT32))
        functions = c.pointwise([], select(is_line, sine, cosine), (height + width,), "")
        inputs = [
            (functions, [ViewOp("slice", 0, 0, 1, height), ViewOp("insert", 1)]),
            (functions, [ViewOp("slice", 0, height, 1, width), ViewOp("insert", 0)]),
        ]
        waves = numbers["ampl_y"] * load(DType.FLOAT, 1), numbers["ampl_x"] * load(DType.FLOAT, 0)
        return masked(c, x, (down + waves[0], across + waves[1]), inputs=inputs)

    def reference(self, row: RowContext, x: Any) -> Any:
        n = {name: np.float32(row.number(name)) for name in _NUMBERS}

        def places(y: Any, x: Any, height: int, width: int) -> Any:
            sine = np.sin((n["freq_x"] * y + n["phase_x"]).astype(np.float64)).astype(np.float32)
            cosine = np.cos((n["freq_y"] * x + n["phase_y"]).astype(np.float64)).astype(np.float32)
            return y + n["ampl_y"] * cosine, x + n["ampl_x"] * sine

        return masked_reference(row, x, places)
