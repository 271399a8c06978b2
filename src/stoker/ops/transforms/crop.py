# SPDX-License-Identifier: Apache-2.0
"""``transforms.crop``."""

from __future__ import annotations

from typing import Any

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ._transform import Rows, Transform, TransformArguments

_NAMES = ("from_start", "from_end", "to_start", "to_end")


class Crop(Transform, name="transforms.crop"):
    """Create a matrix that maps one box to another. Input: a matrix to apply before, if any. Output: float32."""

    from_start = arg("float", (0.0,), many=True, per_row=True, doc="Lower corner of the box that points are in.")
    from_end = arg("float", (1.0,), many=True, per_row=True, doc="Upper corner of that box.")
    to_start = arg("float", (0.0,), many=True, per_row=True, doc="Lower corner of the box that they are taken to.")
    to_end = arg("float", (1.0,), many=True, per_row=True, doc="Upper corner of that box.")
    absolute = arg("bool", False, doc="Exchange the corners of a box where the lower one is above the upper one.")
    cases = (
        {"from_start": (1.0, 2.0), "from_end": (3.0, 6.0)},
        {"from_start": (3.0, 2.0), "from_end": (1.0, 6.0), "to_end": (10.0, 10.0), "absolute": True},
    )

    def matrix(self, take: TransformArguments) -> Rows:
        size = max(take.length(name) for name in _NAMES)
        if size < 2:
            raise ArgumentError("`transforms.crop`: expected a corner with one number per dimension")
        (a, b), (p, q) = (self._box(take, names, size) for names in (_NAMES[:2], _NAMES[2:]))
        rows: Rows = []
        for i in range(size):
            extent = b[i] - a[i]
            take.require(ex.absolute(extent) > 0, "expected a box that is not flat, got an extent of {0}", extent)
            factor = (q[i] - p[i]) / extent
            rows.append([*(factor if i == j else 0.0 for j in range(size)), p[i] - factor * a[i]])
        return rows

    def _box(self, take: TransformArguments, names: tuple[str, ...], size: int) -> tuple[list[Any], list[Any]]:
        low, high = (take.vector(name, size) for name in names)
        if not take.flag("absolute"):
            return low, high
        pairs = list(zip(low, high, strict=True))
        return [ex.minimum(a, b) for a, b in pairs], [ex.maximum(a, b) for a, b in pairs]
