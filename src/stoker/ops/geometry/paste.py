# SPDX-License-Identifier: Apache-2.0
"""``paste``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import IMAGES, Operator, RowContext
from ...contract.pixel import load, select, uniform
from ...contract.step import Value
from ...contract.types import DType
from ..generic.cast import cast_array, number_in
from ._window import lies_inside, pad, pad_reference


class Paste(Operator, name="paste"):
    """Put an image on a larger canvas. Input: HW, HWC, CHW or these with a leading F, up to 32 bits an element. Output:
    the same layout.

    The canvas has ``int(ratio * extent)`` pixels, at least ``int(min_canvas_size)``, and the image begins at
    ``int(paste * (canvas - extent))``, in float32. The bytes are DALI's.
    """

    default_layouts = IMAGES
    takes_bfloat16 = True
    ratio = arg("float", per_row=True, doc="Extents of the canvas as multiples of the image's, at least 1.")
    fill_value = arg("int", many=True, doc="Colour of the canvas: one value, or one for each channel.")
    n_channels = arg("int", 3, doc="Accepted; the image says how many channels it has.")
    paste_x = arg("float", 0.5, per_row=True, doc="Horizontal place of the image, from 0 (left) to 1 (right).")
    paste_y = arg("float", 0.5, per_row=True, doc="Vertical place of the image, from 0 (top) to 1 (bottom).")
    min_canvas_size = arg("float", 0.0, per_row=True, doc="Smallest extent of the canvas in pixels.")
    cases = (
        {"ratio": 1.7, "fill_value": (1, 2, 3), "paste_x": 0.3, "paste_y": 0.8},
        {"ratio": 1.0, "fill_value": 300, "min_canvas_size": 25.5},
    )

    def validate(self, args: Mapping[str, Any]) -> None:
        if not args["fill_value"] or len(args["fill_value"]) > 16:
            raise ArgumentError(f"`paste`: expected 1 to 16 numbers as `fill_value`, got {len(args['fill_value'])}")

    def lower(self, c: Lowering, x: Value) -> Value:
        ratio, least = c.scalar("ratio"), c.scalar("min_canvas_size")
        c.require(ex.both(ratio >= 1, ratio < 1 << 20), "expected a `ratio` of at least 1, got {0}", ratio)
        c.require(ex.both(least >= 0, least < 1 << 24), "expected a `min_canvas_size` of at least 0, got {0}", least)
        windows = {}
        for name, place in (("H", c.scalar("paste_y")), ("W", c.scalar("paste_x"))):
            c.require(ex.both(place >= 0, place <= 1), "expected places from 0 to 1, got {0}", place)
            n = c.extent(x, name)
            canvas = ex.maximum(ex.trunc(ex.float32(ex.float32(ratio) * n)), ex.trunc(least))
            start = ex.trunc(ex.float32(ex.float32(place) * (canvas - n)))
            windows[c.axis(x, name)] = (0 - start, canvas)
        fills = c.const("fill_value")
        if len(fills) == 1:
            return pad(c, x, windows, fills[0])
        at = c.axis(x, "C")
        c.require(
            ex.equal(x.shape[at], len(fills)), "expected one `fill_value`, or one for each of {1} channels, got {0}",
            len(fills), x.shape[at],
        )  # fmt: skip
        inside = lies_inside(c, x, windows)
        colours = [uniform(number_in(fill, x.dtype), x.dtype) for fill in fills]
        program = [select(inside, load(x.dtype, 0, k), colour) for k, colour in enumerate(colours)]
        return c.channelled(pad(c, x, windows, 0.0), program, at)

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        ratio, windows = np.float32(row.number("ratio")), {}
        if not ratio >= 1:
            raise ValueError("expected a ratio of at least 1")
        for name, place in (("H", row.number("paste_y")), ("W", row.number("paste_x"))):
            n = x.shape[layout.index(name)]
            canvas = max(int(ratio * np.float32(n)), math.trunc(row.number("min_canvas_size")))
            windows[layout.index(name)] = (-int(np.float32(place) * np.float32(canvas - n)), canvas)
        out, mask = pad_reference(x, windows)
        fills = cast_array(np.asarray(row["fill_value"], np.float64), DType.of(x.dtype))
        if len(fills) > 1:
            fills = fills.reshape([-1 if name == "C" else 1 for name in layout])
        return np.where(mask, out, fills)
