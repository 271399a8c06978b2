# SPDX-License-Identifier: Apache-2.0
"""``transforms.translation``."""

from __future__ import annotations

from ...contract.argument import arg
from ._transform import Rows, Take, Transform


class Translation(Transform, name="transforms.translation"):
    """A matrix that shifts points. Input: a matrix that is applied before, if any. Output: float32 ``(n, n + 1)``."""

    offset = arg("float", many=True, per_row=True, doc="The shift; its length is the number of dimensions.")
    cases = ({"offset": (3.0, -2.5)}, {"offset": (1.0, 2.0, 3.0)})

    def matrix(self, take: Take) -> Rows:
        size = take.length("offset")
        shift = take.vector("offset", size)
        return [[*(float(i == j) for j in range(size)), shift[i]] for i in range(size)]
