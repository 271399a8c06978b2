# SPDX-License-Identifier: Apache-2.0
"""``transforms.scale``."""

from __future__ import annotations

from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ._transform import MOST_NUMBERS, Rows, Transform, TransformArguments, linear


class Scale(Transform, name="transforms.scale"):
    """Create a matrix that scales points. Input: a matrix to apply before, if any. Output: float32 ``(n, n + 1)``."""

    scale = arg("float", many=True, per_row=True, doc="Factors, one per dimension, or one for all.")
    center = arg(
        "float", None, many=True, per_row=True, doc="Fixed point, in the points' units; by default the origin."
    )
    ndim = arg("int", None, doc="Number of dimensions, if `scale` is one factor for all.")
    cases = ({"scale": (2.0, 0.5)}, {"scale": (2.0,), "ndim": 3}, {"scale": (2.0, 3.0), "center": (4.0, 5.0)})

    def matrix(self, take: TransformArguments) -> Rows:
        size = take.length("scale")
        if take.given("ndim"):
            size = int(take.number("ndim"))
            if not 1 <= size <= MOST_NUMBERS:
                raise ArgumentError(f"`transforms.scale`: expected `ndim` from 1 to {MOST_NUMBERS}, got {size}")
        elif take.given("center"):
            size = max(size, take.length("center"))
        factors = take.vector("scale", size)
        square = [[factors[i] if i == j else 0.0 for j in range(size)] for i in range(size)]
        return linear(square, take.vector("center", size) if take.given("center") else None)
