# SPDX-License-Identifier: Apache-2.0
"""``transforms.rotation``."""

from __future__ import annotations

from ...contract import expr as ex
from ...contract.argument import arg
from ._transform import Rows, Transform, TransformArguments, linear


class Rotation(Transform, name="transforms.rotation"):
    """Create a matrix that rotates points. Input: a matrix to apply before, if any. Output: float32, 2x3, or 3x4.

    The rotation is from the first axis towards the second; in space, about ``axis``.
    """

    exactness = "within float32 rounding"
    angle = arg("float", per_row=True, doc="Angle in degrees, from the first axis towards the second.")
    axis = arg("float", None, many=True, per_row=True, doc="Axis of a rotation in space; three numbers, not all zero.")
    center = arg(
        "float", None, many=True, per_row=True, doc="Fixed point, in the points' units; by default the origin."
    )
    cases = ({"angle": 30.0}, {"angle": 30.0, "center": (4.0, 5.0)}, {"angle": 50.0, "axis": (1.0, 2.0, -1.0)})

    def matrix(self, take: TransformArguments) -> Rows:
        cos, sin = take.cos_sin(take.number("angle"))
        size = 3 if take.given("axis") else 2
        square = self._in_space(take, cos, sin) if size == 3 else [[cos, -sin], [sin, cos]]
        return linear(square, take.vector("center", size) if take.given("center") else None)

    def _in_space(self, take: TransformArguments, cos: object, sin: object) -> Rows:
        """Return the matrix of a rotation in space, by Rodrigues' formula."""
        u = take.vector("axis", 3)
        length = ex.sqrt(u[0] * u[0] + u[1] * u[1] + u[2] * u[2])
        take.require(length > 0, "expected an `axis` that is not zero")
        u = [n / length for n in u]
        cross = [[0.0, -u[2], u[1]], [u[2], 0.0, -u[0]], [-u[1], u[0], 0.0]]
        rest = 1 - cos  # type: ignore[operator]
        return [[u[i] * u[j] * rest + cross[i][j] * sin + (cos if i == j else 0.0) for j in range(3)] for i in range(3)]
