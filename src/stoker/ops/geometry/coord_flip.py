# SPDX-License-Identifier: Apache-2.0
"""``coord_flip``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import binary, coordinate, load, select, uniform
from ...contract.step import Value
from ...contract.types import DType


class CoordFlip(Operator, name="coord_flip"):
    """Mirror points about a center: ``2 * center - x``. Input: floats with one to three coordinates along the last
    axis, for example (N, 2). Output: the same shape and type.

    Coordinates that are not mirrored keep their bits. The default centers fit coordinates from 0 to 1; for pixels give
    half of the image's width and height. Unlike DALI, a single point without the axis of points is accepted, and all
    floating types are.
    """

    takes_bfloat16 = True
    flip_x = arg("int", 1, per_row=True, doc="Mirror x where not 0.")
    flip_y = arg("int", 0, per_row=True, doc="Mirror y where not 0.")
    flip_z = arg("int", 0, per_row=True, doc="Mirror z where not 0.")
    center_x = arg("float", 0.5, per_row=True, doc="Center of x.")
    center_y = arg("float", 0.5, per_row=True, doc="Center of y.")
    center_z = arg("float", 0.5, per_row=True, doc="Center of z.")
    layout = arg("str", "", doc='Order of the coordinates: letters of "xyz", as many as there are; by default x, y, z.')
    cases = (
        {},
        {"flip_y": 1, "center_x": 100.0, "center_y": 30.25},
        {"flip_x": 0},
        {"layout": "yx", "flip_x": 0, "flip_y": 1},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.each(*(samples.noise(i, (n, 2), "float32") for i, n in enumerate((5, 0, 40))))

    def validate(self, args: Mapping[str, Any]) -> None:
        layout = args["layout"]
        if not set(layout) <= set("xyz") or len(set(layout)) != len(layout):
            raise ArgumentError(f"`coord_flip`: expected `layout` with different letters of 'xyz', got {layout!r}")

    def lower(self, c: Lowering, x: Value) -> Value:
        c.expect(x.dtype.is_float, f"expected floating-point coordinates, got {x.dtype}. Use `fn.cast` before")
        c.expect(x.rank > 0, "expected points with their coordinates along the last axis, got a single number")
        layout, given = c.const("layout") or "xyz", x.shape[-1]
        if c.const("layout"):
            text = f"expected points with {len(layout)} coordinates, as `layout` has, got {{0}}"
            c.require(ex.equal(given, len(layout)), text, given)
        else:
            c.require((given >= 1) & (given <= 3), "expected points with 1 to 3 coordinates, got {0}", given)
        wide = DType.FLOAT if x.dtype.size <= 4 else DType.FLOAT64
        old = load(x.dtype)
        out, at = old, coordinate(x.rank - 1)
        for i, name in enumerate(layout):
            flag, center = c.scalar(f"flip_{name}"), c.scalar(f"center_{name}")
            if ex.is_static(flag) and not flag:
                continue
            of_each = x.rank > 1 or not (c.differs_by_frame(flag) or c.differs_by_frame(center))
            c.expect(of_each, "expected arguments for the whole point, got one per frame")
            c.require(ex.isfinite(center), f"expected a finite `center_{name}`, got {{0}}", center)
            # No element has the position -1.
            here = binary("eq", at, uniform(ex.where(flag, i, -1), DType.INT32))
            out = select(here, (uniform(center * 2, wide) - old.cast(wide)).cast(x.dtype), out)
        return x if out is old else c.pointwise([x], out)

    def reference(self, row: RowContext, x: Any) -> Any:
        out = np.array(x)
        wide: Any = np.float32 if x.dtype.itemsize <= 4 else np.float64
        for i, name in enumerate((row["layout"] or "xyz")[: x.shape[-1]]):
            if row.number(f"flip_{name}"):
                out[..., i] = wide(2 * row.number(f"center_{name}")) - x[..., i].astype(wide)
        return out
