# SPDX-License-Identifier: Apache-2.0
"""``transforms.shear``."""

from __future__ import annotations

from typing import Any

from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ._transform import Rows, Transform, TransformArguments, linear

_ELEMENTS = {2: 2, 6: 3}  # numbers -> dimensions


class Shear(Transform, name="transforms.shear"):
    """Create a matrix that shears points. Input: a matrix to apply before, if any. Output: float32, 2x3, or 3x4."""

    exactness = "within float32 rounding"
    shear = arg(
        "float", None, many=True, per_row=True,
        doc="Shift of an axis along each other one: (x, y), in space (xy, xz, yx, yz, zx, zy).",
    )  # fmt: skip
    angles = arg("float", None, many=True, per_row=True, doc="`shear` as angles in degrees, between -90 and 90.")
    center = arg(
        "float", None, many=True, per_row=True, doc="Fixed point, in the points' units; by default the origin."
    )
    cases = (
        {"shear": (0.3, -0.2)},
        {"angles": (20.0, 10.0), "center": (4.0, 5.0)},
        {"shear": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)},
    )

    def matrix(self, take: TransformArguments) -> Rows:
        name = "shear" if take.given("shear") else "angles"
        if not take.given(name) or (name == "shear" and take.given("angles")):
            raise ArgumentError("`transforms.shear`: expected `shear` or `angles`")
        count = take.length(name)
        size = _ELEMENTS.get(count)
        if size is None:
            raise ArgumentError(f"`transforms.shear`: expected 2 or 6 numbers as `{name}`, got {count}")
        factors = [self._factor(take, name, i) for i in range(count)]
        square: Rows = [[1.0 if i == j else factors.pop(0) for j in range(size)] for i in range(size)]
        return linear(square, take.vector("center", size) if take.given("center") else None)

    def _factor(self, take: TransformArguments, name: str, i: int) -> Any:
        number = take.number(name, i)
        if name == "shear":
            return number
        take.require((number > -90) & (number < 90), "expected `angles` between -90 and 90 degrees, got {0}", number)
        cos, sin = take.cos_sin(number)
        return sin / cos
