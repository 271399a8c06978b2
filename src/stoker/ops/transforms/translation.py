# SPDX-License-Identifier: Apache-2.0
"""``transforms.translation``."""

from __future__ import annotations

from ...contract.argument import arg
from ._transform import Rows, Transform, TransformArguments


class Translation(Transform, name="transforms.translation"):
    """Create a matrix that translates points. Input: a matrix to apply before, if any.

    Output: float32 ``(n, n + 1)``.
    """

    offset = arg("float", many=True, per_row=True, doc="The shift; its length is the number of dimensions.")
    cases = ({"offset": (3.0, -2.5)}, {"offset": (1.0, 2.0, 3.0)})

    def matrix(self, take: TransformArguments) -> Rows:
        size = take.length("offset")
        shift = take.vector("offset", size)
        return [[*(float(i == j) for j in range(size)), shift[i]] for i in range(size)]
