# SPDX-License-Identifier: Apache-2.0
"""Shared code of operators on objects (boxes, key points, polygons) that move with an image by an affine matrix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType
from ._warp import matrix_numbers

AREA_DOC = "Least area of an object within the canvas, in pixels of the canvas."
VISIBILITY_DOC = "Least share of an object's area within the canvas, from 0 to 1."
_NUMBERS = 6


class AffineObjectArguments(Operator):
    """Inputs: objects, their image, and the image that the matrix makes of it. Only extents of images are read."""

    devices = ("cpu",)
    hidden = True
    matrix = arg("float", many=True, per_row=True, doc="Six numbers that take a point of the image to the canvas.")
    normalized = arg("bool", False, doc="Coordinates are relative to the image and to the canvas, else in pixels.")
    window = arg("float", None, many=True, per_row=True, doc="Part of the canvas, x0, y0, x1, y1; by default all.")


class FilterArguments(AffineObjectArguments):
    """Arguments that drop objects."""

    min_area = arg("float", 0.0, per_row=True, doc=AREA_DOC)
    min_visibility = arg("float", 0.0, per_row=True, doc=VISIBILITY_DOC)


def least_numbers(c: Lowering) -> tuple[Scalar, Scalar]:
    """Return `min_area` and `min_visibility`, checked."""
    area, share = c.scalar("min_area"), c.scalar("min_visibility")
    c.require(area >= 0, "expected `min_area` of at least 0, got {0}", area)
    c.require(ex.both(share >= 0, share <= 1), "expected `min_visibility` from 0 to 1, got {0}", share)
    return area, share


def require_objects(c: Lowering, x: Value, numbers: int, name: str) -> None:
    """Require ``x`` to be float32 of shape (N, numbers)."""
    text = f"expected {name} of float32 with two axes, got {x.dtype} with {x.rank}"
    c.expect(x.dtype == DType.FLOAT and x.rank == 2, text)
    c.require(ex.equal(x.shape[1], numbers), f"expected {name} of {numbers} numbers, got {{0}}", x.shape[1])


def frame_numbers(c: Lowering, image: Value, canvas: Value) -> tuple[Scalar, ...]:
    """Return the first parameters of the kernels in native/kernels/affine_objects.cpp."""
    matrix = matrix_numbers(c, None, _NUMBERS)
    for number in matrix:
        c.require(ex.isfinite(number), "expected a finite matrix, got {0}", number)
    height, width = c.extent(canvas, "H"), c.extent(canvas, "W")
    seen: tuple[Scalar, ...] = (0, 0, width, height)
    if c.given("window"):
        c.expect(c.fixed_length("window") == 4, "expected `window` as (x0, y0, x1, y1)")
        seen = tuple(c.scalar("window", i) for i in range(4))
    if not c.const("normalized"):
        return (*matrix, 1, 1, *seen, 1, 1)
    return (*matrix, c.extent(image, "W"), c.extent(image, "H"), *seen, width, height)


@dataclass(frozen=True)
class Frame:
    """The same numbers for a reference, float64: x before y."""

    matrix: Any
    scale: Any
    start: Any
    end: Any
    unit: Any

    @staticmethod
    def of(row: RowContext, image: Any, canvas: Any) -> Frame:
        """Return the frame of a row whose second and third input are the images."""
        own, seen = (_size(x, row.layouts[k] if row.layouts else "") for k, x in ((1, image), (2, canvas)))
        one = np.ones(2)
        matrix = np.asarray(row["matrix"], np.float64).reshape(2, 3)
        window = np.array([0, 0, *seen]) if row["window"] is None else np.asarray(row["window"], np.float64).reshape(4)
        scale, unit = (own, seen) if row["normalized"] else (one, one)
        return Frame(matrix, scale, window[:2], window[2:], unit)

    def move(self, points: Any) -> Any:
        """Return the places of points (..., 2) on the canvas, in pixels."""
        x, y = np.moveaxis(np.asarray(points, np.float64) * self.scale, -1, 0)
        return np.stack([m[0] * x + m[1] * y + m[2] for m in self.matrix], -1)

    def clip(self, polygon: Sequence[Any]) -> list[Any]:
        """Return a polygon, (x, y) each, within the canvas (Sutherland and Hodgman)."""
        points = [np.asarray(p, np.float64) for p in polygon]
        for axis in (0, 1):
            for limit, sign in ((self.start[axis], 1.0), (self.end[axis], -1.0)):
                depth = [sign * (p[axis] - limit) for p in points]
                clipped = []
                for i, p in enumerate(points):
                    k = (i + 1) % len(points)
                    if depth[i] >= 0:
                        clipped.append(p)
                    if (depth[i] >= 0) != (depth[k] >= 0):
                        cut = p + depth[i] / (depth[i] - depth[k]) * (points[k] - p)
                        cut[axis] = limit
                        clipped.append(cut)
                points = clipped
        return points


def area_of(polygon: Sequence[Any]) -> float:
    """Return the area of a polygon, by triangles at its first vertex."""
    twice = 0.0
    for a, b in pairwise(polygon[1:]):
        (ax, ay), (bx, by) = a - polygon[0], b - polygon[0]
        twice += ax * by - bx * ay
    return abs(twice) / 2


def keeps(row: RowContext, whole: float, left: float) -> bool:
    """Return whether enough of an object is left."""
    return left > 0 and left >= row.number("min_area") and left >= row.number("min_visibility") * whole


def _size(image: Any, layout: str) -> Any:
    layout = layout or {2: "HW", 3: "HWC", 4: "FHWC"}[image.ndim]
    return np.array([image.shape[layout.index(name)] for name in "WH"], np.float64)
