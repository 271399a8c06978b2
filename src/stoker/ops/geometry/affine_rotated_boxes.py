# SPDX-License-Identifier: Apache-2.0
"""``_affine_rotated_boxes``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.step import Value
from ...contract.types import DType
from ._affine_objects import FilterArguments, Frame, area_of, frame_numbers, keeps, least_numbers, require_objects


class AffineRotatedBoxes(FilterArguments, name="_affine_rotated_boxes"):
    """Move rotated boxes with their image. Inputs: boxes, float32 (N, 5): centre, width, height, degrees from x towards
    y; the image; the canvas. Outputs: the boxes that are left, each the smallest rotated box around its moved corners;
    their numbers, int32.
    """

    exactness = "within float32 rounding"
    inputs = (3, 3)
    outputs = 2
    filters = arg("bool", True, doc="Drop boxes of which too little is left.")
    cases = (
        {"matrix": (0.8, 0.3, 2.0, -0.2, 0.9, 4.0)},
        {"matrix": (-1.0, 0.0, 20.0, 0.0, 1.0, 0.0), "min_visibility": 0.6},
        {"matrix": (2.0, 1.0, 0.0, 0.0, 0.3, 0.0), "filters": False},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rows: samples.Rows = []
        for i, (image, canvas) in enumerate(samples.images(copies=2)):
            rng = np.random.default_rng(i)
            parts = [rng.uniform(0, 17, (3 * i, 2)), rng.uniform(1, 9, (3 * i, 2)), rng.uniform(-170, 170, (3 * i, 1))]
            rows.append((np.concatenate(parts, 1).astype(np.float32), image, canvas))
        return rows

    def lower(self, c: Lowering, boxes: Value, image: Value, canvas: Value) -> Any:
        require_objects(c, boxes, 5, "rotated boxes")
        c.expect(not c.const("normalized"), "expected rotated boxes in pixels: angles have no meaning in relative ones")
        kept, index, _ = c.native(
            "affine_rotated_boxes", [boxes], [(DType.FLOAT, (None, 5), boxes.layout), (DType.INT32, (None,), "")],
            attrs=(c.const("filters"),),
            params=(*frame_numbers(c, image, canvas), *least_numbers(c)), max_output=boxes.shape[0],
        )  # fmt: skip
        return kept, index

    def reference(self, row: RowContext, boxes: Any, image: Any, canvas: Any) -> Any:
        frame, index, out = Frame.of(row, image, canvas), [], []
        for i, (x, y, width, height, degrees) in enumerate(boxes.astype(np.float64)):
            if not (width >= 0 and height >= 0) or not math.isfinite(x + y + width + height + degrees):
                raise ArgumentError("expected finite rotated boxes with extents of at least 0")
            cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
            centre = frame.move([x, y])
            u, v = frame.matrix[:, :2] @ [width * cos, width * sin], frame.matrix[:, :2] @ [-height * sin, height * cos]
            if row["filters"]:
                sides = ((-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5))
                left = area_of(frame.clip([centre + s * u + t * v for s, t in sides]))
                if not keeps(row, abs(u[0] * v[1] - u[1] * v[0]), left):
                    continue
            index.append(i)
            out.append([*centre, *_enclosing(u, v)])
        return np.array(out, np.float32).reshape(-1, 5), np.array(index, np.int32)


def _enclosing(u: Any, v: Any) -> tuple[float, float, float]:
    """Return width, height and degrees of the smallest rectangle around a parallelogram: along u, or along v."""
    across, down = math.hypot(*u), math.hypot(*v)
    inner, cross = abs(u @ v), u[0] * v[1] - u[1] * v[0]
    aside = np.array([-v[1], v[0]] if cross < 0 else [v[1], -v[0]])
    width, height, along = across, down, u if across > 0 else aside
    if across > 0 and down > 0:
        if inner / across**2 <= inner / down**2:
            width, height = across + inner / across, abs(cross) / across
        else:
            width, height, along = abs(cross) / down, down + inner / down, aside
    return width, height, math.degrees(math.atan2(along[1], along[0])) if along.any() else 0.0
