# SPDX-License-Identifier: Apache-2.0
"""``roi_random_crop``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType

_FAR = 1 << 40


class RoiRandomCrop(Operator, name="roi_random_crop"):
    """Draw the start of a window of a fixed size that contains as much as possible of a region of interest: all of it,
    or only parts of it. Input: optionally the data that will be cropped. Output: the start along each axis, int64.

    Along each axis the start is uniform between ``roi_start`` and the region's end minus the window's extent, both
    included. If the extents of the data are known (the input, or ``in_shape``), only windows within the data are drawn;
    the region must lie within them, and the window must not be larger.
    """

    devices = ("cpu",)
    inputs = (0, 1)
    draws = 1
    crop_shape = arg("int", many=True, per_axis=True, per_row=True, doc="Extents of the window.")
    roi_start = arg("int", many=True, per_axis=True, per_row=True, doc="Start of the region.")
    roi_end = arg("int", None, many=True, per_axis=True, per_row=True, doc="End of the region.")
    roi_shape = arg(
        "int", None, many=True, per_axis=True, per_row=True, doc="Extents of the region, instead of `roi_end`."
    )
    in_shape = arg(
        "int", None, many=True, per_axis=True, per_row=True, doc="Extents of the data, instead of the input."
    )
    cases = (
        {"crop_shape": (5, 6, 3), "roi_start": (1, 2, 0), "roi_end": (10, 4, 3)},
        {"crop_shape": (9, 2, 2), "roi_start": (4, 9, 1), "roi_shape": (2, 8, 1)},
    )

    def lower(self, c: Lowering, *data: Value) -> Value:
        if c.given("roi_end") == c.given("roi_shape"):
            raise ArgumentError("`roi_random_crop`: expected `roi_end` or `roi_shape`")
        if data and c.given("in_shape"):
            raise ArgumentError("`roi_random_crop`: expected the data as input, or `in_shape`, got both")
        axes = c.fixed_length("crop_shape")
        c.expect(axes >= 1, "expected `crop_shape` of at least one number, got none")
        end = "roi_end" if c.given("roi_end") else "roi_shape"
        for name in ("roi_start", end, *(("in_shape",) if c.given("in_shape") else ())):
            count = c.fixed_length(name)
            c.expect(count == axes, f"expected {axes} numbers as `{name}`, got {count}")
        extents: tuple[Scalar, ...] | None = None
        if data:
            extents = data[0].shape
            c.expect(len(extents) == axes, f"expected data of {axes} axes, as `crop_shape`, got {len(extents)}")
        elif c.given("in_shape"):
            extents = tuple(self._whole(c, "in_shape", k) for k in range(axes))
        ranges: list[Scalar] = []
        for k in range(axes):
            crop, start, last = (self._whole(c, name, k) for name in ("crop_shape", "roi_start", end))
            c.require(crop >= 0, "expected `crop_shape` of at least 0, got {0}", crop)
            last = start + last if end == "roi_shape" else last
            c.require(last >= start, "expected a region whose end is not below its start, got {0} to {1}", start, last)
            low, high = ex.minimum(start, last - crop), ex.maximum(start, last - crop)
            if extents is not None:
                n = extents[k]
                text = "expected a region within the data (0 to {0}), got {1} to {2}"
                c.require(ex.both(start >= 0, last <= n), text, n, start, last)
                c.require(crop <= n, "expected a window of at most {0} elements, as the data, got {1}", n, crop)
                low, high = ex.clamp(low, 0, n - crop), ex.clamp(high, 0, n - crop)
            ranges += [low, high]
        return c.native("random_start", [], [(DType.INT64, (axes,), "")], attrs=c.draw, params=ranges)[0]

    @staticmethod
    def _whole(c: Lowering, name: str, axis: int) -> Scalar:
        n = c.scalar(name, axis)
        right = ex.both(ex.absolute(n) <= _FAR, ex.equal(ex.floor(n), n))
        c.require(right, f"expected whole numbers up to 2**40 as `{name}`, got {{0}}", n)
        return n

    def reference(self, row: RowContext, *data: Any) -> Any:
        crop, start = (np.asarray(row[name], np.int64).reshape(-1) for name in ("crop_shape", "roi_start"))
        shaped = row["roi_end"] is None
        end = np.asarray(row["roi_shape"] if shaped else row["roi_end"], np.int64).reshape(-1)
        end = start + end if shaped else end
        low, high = np.minimum(start, end - crop), np.maximum(start, end - crop)
        if data or row["in_shape"] is not None:
            extents = np.asarray(data[0].shape if data else row["in_shape"], np.int64).reshape(-1)
            if (start < 0).any() or (end > extents).any() or (crop > extents).any():
                raise ArgumentError("expected a region and a window within the data")
            low, high = np.clip(low, 0, extents - crop), np.clip(high, 0, extents - crop)
        if (end < start).any() or (crop < 0).any():
            raise ArgumentError("expected extents of at least 0")
        counts = high - low + 1
        return low + np.array([min(int(row.stream.uniform() * n), n - 1) for n in counts], np.int64)
