# SPDX-License-Identifier: Apache-2.0
"""``lens_distortion``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.pixel import uniform
from ...contract.step import Value
from ...contract.types import InterpType
from ._map import MapArguments, height_and_width, interpolation, mapped_reference, pixel_places, sampled

_RADIAL, _TANGENTIAL = 3, 2


class LensDistortion(MapArguments, name="lens_distortion"):
    """Distort images as a lens does. Input: images of up to 32 bits an element, HW, HWC, CHW or these with a leading F.
    Output: the same.

    Brown's model: with x and y the distance from the center divided by ``focal`` times the width and the height, and r
    their length, the source is at ``x (1 + k1 r^2 + k2 r^4 + k3 r^6) + 2 p1 x y + p2 (r^2 + 2 x^2)``, and likewise for
    y. Positive numbers in ``radial`` give a barrel. Coordinates are computed in float32. They are those of OpenCV's
    ``initUndistortRectifyMap`` within its rounding.
    """

    radial = arg("float", (0.0,), many=True, per_row=True, doc="k1, k2 and k3; up to three numbers.")
    tangential = arg("float", (0.0, 0.0), many=True, per_row=True, doc="p1 and p2.")
    focal = arg("float", 1.0, per_row=True, doc="Focal length as a share of the image's width and height.")
    center = arg("float", (0.5, 0.5), many=True, per_row=True, doc="Optical center (x, y) as a share of the extents.")
    interp_type = interpolation(InterpType.INTERP_LINEAR)
    cases = (
        {"radial": (0.3, -0.1)},
        {"radial": (-0.2, 0.1, 0.05), "tangential": (0.02, -0.03), "focal": 0.8, "interp_type": "INTERP_NN"},
        {"radial": 0.5, "center": (0.3, 0.6), "fill_value": 50.0},
        {"radial": (0.4, 0.1), "fill_value": 50.0, "interp_type": "INTERP_CUBIC"},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        numbers = {}
        for name, most in (("radial", _RADIAL), ("tangential", _TANGENTIAL), ("center", 2), ("focal", 1)):
            count = c.length(name)
            c.expect(count is not None and 0 < count <= most, f"expected 1 to {most} numbers as `{name}`")
            many = [c.scalar(name, i) for i in range(count or 0)]
            for number in many:
                c.require(ex.isfinite(number), f"expected finite numbers as `{name}`, got {{0}}", number)
            numbers[name] = many
        for name in ("tangential", "center"):
            c.expect(len(numbers[name]) == 2, f"expected two numbers as `{name}`, got one")
        focal = numbers["focal"][0]
        c.require(focal > 0, "expected a `focal` above 0, got {0}", focal)
        height, width = height_and_width(c, x)
        own_y, own_x = pixel_places()
        middle_y, middle_x = numbers["center"][1] * height - 0.5, numbers["center"][0] * width - 0.5
        across = (own_x - uniform(middle_x)) / uniform(focal * width)
        down = (own_y - uniform(middle_y)) / uniform(focal * height)
        square = across * across + down * down
        factor = uniform(numbers["radial"][-1])
        for k in reversed(numbers["radial"][:-1]):
            factor = factor * square + uniform(k)
        factor = factor * square + 1.0
        p1, p2 = (uniform(p) for p in numbers["tangential"])
        cross = across * down * 2.0
        moved_x = across * factor + p1 * cross + p2 * (square + across * across * 2.0)
        moved_y = down * factor + p2 * cross + p1 * (square + down * down * 2.0)
        kind = c.const("interp_type")
        half = 0.5 if kind == InterpType.INTERP_NN else 0.0
        places = (
            moved_y * uniform(focal * height) + uniform(middle_y) + half,
            moved_x * uniform(focal * width) + uniform(middle_x) + half,
        )
        return sampled(c, x, places, kind, fill=c.const("fill_value"))

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        height, width = (x.shape[layout.index(name)] for name in "HW")
        f32 = np.float32
        radial = np.asarray(row["radial"], np.float64).reshape(-1).astype(f32)
        p1, p2 = (f32(row.number("tangential", i)) for i in (0, 1))
        focal = row.number("focal")
        own_y, own_x = (g.astype(f32) for g in np.indices((height, width)))
        middle_y, middle_x = row.number("center", 1) * height - 0.5, row.number("center", 0) * width - 0.5
        across, down = (own_x - f32(middle_x)) / f32(focal * width), (own_y - f32(middle_y)) / f32(focal * height)
        square = across * across + down * down
        factor = np.full_like(square, radial[-1])
        for k in radial[:-1][::-1]:
            factor = factor * square + k
        factor = factor * square + f32(1)
        cross = across * down * f32(2)
        moved_x = across * factor + p1 * cross + p2 * (square + across * across * f32(2))
        moved_y = down * factor + p2 * cross + p1 * (square + down * down * f32(2))
        kind = row["interp_type"]
        half = f32(0.5 if kind == InterpType.INTERP_NN else 0)
        map_y = moved_y * f32(focal * height) + f32(middle_y) + half
        map_x = moved_x * f32(focal * width) + f32(middle_x) + half
        return mapped_reference(x, layout, map_y, map_x, kind, fill=row["fill_value"])
