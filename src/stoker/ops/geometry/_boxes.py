# SPDX-License-Identifier: Apache-2.0
"""Numbers of bounding boxes: which of them are starts, ends and extents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.step import Value

_STARTS, _ENDS, _EXTENTS = "xyz", "XYZ", "WHD"
_NAMED = {(2, True): "xyXY", (2, False): "xyWH", (3, True): "xyzXYZ", (3, False): "xyzWHD"}


@dataclass(frozen=True)
class BoxLayout:
    """Places of the numbers of a box.

    Attributes:
        axes: 2, or 3 for volumes.
        low: per axis, the place of the start.
        high: per axis, the place of the end or of the extent.
        extents: boxes have extents instead of ends.
    """

    axes: int
    low: tuple[int, ...]
    high: tuple[int, ...]
    extents: bool

    @staticmethod
    def parse(letters: str, name: str) -> BoxLayout:
        """Return the layout that `bbox_layout` names.

        Raises:
            ArgumentError: the letters are not one start, and one end or extent, for each axis.
        """
        axes = len(letters) // 2
        for seconds in (_ENDS, _EXTENTS):
            wanted = _STARTS[:axes] + seconds[:axes]
            if axes in (2, 3) and sorted(letters) == sorted(wanted):
                low = tuple(letters.index(a) for a in _STARTS[:axes])
                high = tuple(letters.index(a) for a in seconds[:axes])
                return BoxLayout(axes, low, high, seconds is _EXTENTS)
        raise ArgumentError(f"`{name}`: expected `bbox_layout` such as xyXY, xyWH, xyzXYZ or xyzWHD, got {letters!r}")

    @staticmethod
    def of(c: Lowering, boxes: Value) -> BoxLayout:
        """Return the layout of an operator with the arguments `bbox_layout` and `ltrb`."""
        name, letters = c.scope.operator.name, c.const("bbox_layout")
        count = len(letters) if letters else c.likely_extent(boxes, 1, 4)
        c.expect(count in (4, 6), "expected boxes of 4 or 6 numbers, got {0}", count)
        layout = BoxLayout.parse(letters or _NAMED[count // 2, c.const("ltrb")], name)
        text = "expected boxes of {0} numbers, got {1}. Boxes of volumes need `bbox_layout`, such as xyzXYZ"
        c.require(ex.equal(boxes.shape[1], 2 * layout.axes), text, 2 * layout.axes, boxes.shape[1])
        return layout

    @staticmethod
    def in_rows(row: RowContext, boxes: Any) -> BoxLayout:
        """Return the layout for a reference."""
        return BoxLayout.parse(row["bbox_layout"] or _NAMED[boxes.shape[1] // 2, row["ltrb"]], "boxes")

    def corners(self, boxes: Any) -> tuple[Any, Any]:
        """Return starts and ends, (N, axes)."""
        low, high = boxes[:, list(self.low)], boxes[:, list(self.high)]
        return low, low + high if self.extents else high

    def of_corners(self, low: Any, high: Any) -> Any:
        """Return boxes of starts and ends."""
        boxes = np.empty((len(low), 2 * self.axes), low.dtype)
        boxes[:, list(self.low)], boxes[:, list(self.high)] = low, high - low if self.extents else high
        return boxes
