# SPDX-License-Identifier: Apache-2.0
"""``_mosaic_places``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType

IMAGES = 4
_LARGEST = 1 << 24


class MosaicArguments(Operator):
    """Canvas of a mosaic."""

    size = arg("int", many=True, per_axis=True, per_row=True, doc="Size of the canvas in pixels, (height, width).")
    center = arg(
        "float", (0.5, 0.5), many=True, per_axis=True, per_row=True,
        doc="Point where the four images meet, (y, x), as shares of the canvas from 0 to 1: `random.uniform` draws it.",
    )  # fmt: skip


class MosaicPlaces(MosaicArguments, name="_mosaic_places"):
    """Compute the places of four images in a mosaic. Inputs: the four images, then the four resized ones. Outputs:
    first row and column in each resized image, height and width, first row and column on the canvas, int32 (8,); then
    for each image its matrix, float64 (2, 3), and its part of the canvas x0, y0, x1, y1, float64.
    """

    devices = ("cpu",)
    hidden = True
    inputs = (2 * IMAGES, 2 * IMAGES)
    outputs = 3 + 2 * IMAGES
    cases = ({"size": (12, 15), "center": (0.3, 0.8)}, {"size": (13, 17), "center": (0.0, 1.0)})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return [(*row[:IMAGES], *row[:IMAGES]) for row in samples.images(copies=IMAGES)]

    def lower(self, c: Lowering, *images: Value) -> tuple[Value, ...]:
        c.expect(c.fixed_length("size") == 2, "expected `size` as (height, width)")
        c.expect(c.fixed_length("center") == 2, "expected `center` as (y, x)")
        size = [c.scalar("size", i) for i in (0, 1)]
        for n in size:
            right = ex.both(ex.both(n >= 1, n <= _LARGEST), ex.equal(ex.floor(n), n))
            c.require(right, "expected a `size` of 1 to 2**24 whole pixels, got {0}", n)
        middle = []
        for n, share in zip(size, (c.scalar("center", 0), c.scalar("center", 1)), strict=True):
            c.require(ex.both(share >= 0, share <= 1), "expected `center` from 0 to 1, got {0}", share)
            middle.append(ex.floor(share * n + 0.5))
        extents = [[c.extent(x, name) for name in "HW"] for x in images]
        regions, placed = [], []
        for i, (own, shown) in enumerate(zip(extents[:IMAGES], extents[IMAGES:], strict=True)):
            region = place(i, size, middle, shown)
            regions.append(region)
            placed.append((region, matrix(own, shown, region)))
        numbers = [c.numbers([n for r in regions for n in r[k]], DType.INT32) for k in range(3)]
        for region, moved in placed:
            numbers += [c.numbers(moved, DType.FLOAT64, (2, 3)), c.numbers(window(region), DType.FLOAT64)]
        return tuple(numbers)

    def reference(self, row: RowContext, *images: Any) -> Any:
        size = [int(row.number("size", i)) for i in (0, 1)]
        middle = [int(np.floor(row.number("center", i) * n + 0.5)) for i, n in enumerate(size)]
        extents = []
        for k, x in enumerate(images):
            layout = (row.layouts[k] if row.layouts else "") or {2: "HW", 3: "HWC"}[x.ndim]
            extents.append([x.shape[layout.index(name)] for name in "HW"])
        regions = [place(i, size, middle, extents[IMAGES + i]) for i in range(IMAGES)]
        out: list[Any] = [np.array([n for r in regions for n in r[k]], np.int32) for k in range(3)]
        for own, shown, region in zip(extents[:IMAGES], extents[IMAGES:], regions, strict=True):
            out.append(np.array(matrix(own, shown, region), np.float64).reshape(2, 3))
            out.append(np.array(window(region), np.float64))
        return tuple(out)


Region = tuple[list[Any], list[Any], list[Any]]  # start in the image, extents, start on the canvas: y before x


def place(number: int, size: list[Any], middle: list[Any], shown: list[Any]) -> Region:
    """Return the region of image ``number``: 0 top left, 1 top right, 2 bottom left, 3 bottom right.

    Its inner corner lies at the point where all four meet.
    """
    starts, extents, places = [], [], []
    for axis, second in enumerate((number >= 2, number % 2 == 1)):
        extent = size[axis] - middle[axis] if second else middle[axis]
        starts.append(0 if second else shown[axis] - extent)
        extents.append(extent)
        places.append(middle[axis] if second else 0)
    return starts, extents, places


def matrix(own: list[Any], shown: list[Any], region: Region) -> list[Any]:
    """Return the six numbers that take a point of an image to the canvas."""
    (sy, sx), (ty, tx) = ([shown[k] / own[k] for k in (0, 1)], [region[2][k] - region[0][k] for k in (0, 1)])
    return [sx, 0.0, tx, 0.0, sy, ty]


def window(region: Region) -> list[Any]:
    """Return the part of the canvas, x0, y0, x1, y1."""
    _, (height, width), (y, x) = region
    return [x, y, x + width, y + height]
