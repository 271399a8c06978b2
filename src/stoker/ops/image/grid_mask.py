# SPDX-License-Identifier: Apache-2.0
"""``grid_mask``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import Px, binary, load, select, unary, uniform
from ...contract.step import Value
from ...contract.types import DType
from ._color import finite


class GridMask(Operator, name="grid_mask"):
    """Set squares of a grid to 0. Input: images of any type, with axes H and W. Output: the same.

    In a tile of the grid, the square of ``ratio * tile`` pixels at its upper left corner becomes 0. Positions are
    computed in float32. Channels and frames have the same grid. Source: Chen and others, "GridMask data augmentation"
    (2020).

    Pixels outside of the squares keep their bits, and those inside are 0, also if they were NaN. DALI multiplies by 0
    and 1, which keeps NaN. It also treats axes 0 and 1 as rows and columns in every layout.
    """

    gives_bfloat16 = takes_bfloat16 = True
    exactness = "the same bits on every machine; the reference's sine and cosine may differ in the last place"
    tile = arg("int", 100, per_row=True, doc="Side of a tile in pixels, at least 1.")
    ratio = arg("float", 0.5, per_row=True, doc="Side of a square as a share of the tile, from 0 to 1.")
    angle = arg("float", 0.0, per_row=True, doc="Angle in radians by which the grid is turned.")
    shift_x = arg("float", 0.0, per_row=True, doc="Shift of the turned grid along x, in pixels.")
    shift_y = arg("float", 0.0, per_row=True, doc="Shift of the turned grid along y, in pixels.")
    cases = (
        {"tile": 7},
        {"tile": 5, "ratio": 0.3, "angle": 0.5, "shift_x": 2.5, "shift_y": -1.25},
        {"tile": 4, "ratio": 1.0},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        tile, ratio, angle, shift_x, shift_y = finite(c, "tile", "ratio", "angle", "shift_x", "shift_y")
        c.require(tile >= 1, "expected a `tile` of at least 1 pixel, got {0}", tile)
        c.require(ex.both(ratio >= 0, ratio <= 1), "expected a `ratio` from 0 to 1, got {0}", ratio)
        across, down = (c.coordinate(x, name).cast(DType.FLOAT) for name in "WH")
        cosine, sine = (f(angle) / tile for f in (ex.cos, ex.sin))
        kept: Px | None = None
        for a, b, shift in ((cosine, -sine, shift_x), (sine, cosine, shift_y)):
            place = across * uniform(a) + down * uniform(b) - uniform(shift / tile)
            outside = binary("ge", place - unary("floor", place), uniform(ratio))
            kept = outside if kept is None else binary("or", kept, outside)
        assert kept is not None
        return c.pointwise([x], select(kept, load(x.dtype), uniform(0, x.dtype)))

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        tile, ratio, angle = int(row.number("tile")), np.float32(row.number("ratio")), row.number("angle")
        if tile < 1 or not 0 <= ratio <= 1:
            raise ValueError("expected a tile of pixels, and a share")
        across, down = (
            np.arange(x.shape[i], dtype=np.float32).reshape([-1 if k == i else 1 for k in range(x.ndim)])
            for i in (layout.index("W"), layout.index("H"))
        )
        cosine, sine = math.cos(angle) / tile, math.sin(angle) / tile
        keep = np.zeros(x.shape, bool)
        for a, b, name in ((cosine, -sine, "shift_x"), (sine, cosine, "shift_y")):
            place = across * np.float32(a) + down * np.float32(b) - np.float32(row.number(name) / tile)
            keep |= place - np.floor(place) >= ratio
        return np.where(keep, x, np.zeros(1, x.dtype))
