# SPDX-License-Identifier: Apache-2.0
"""``_affine_boxes``."""

from __future__ import annotations

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
from ._affine_objects import FilterArguments, Frame, frame_numbers, keeps, least_numbers, require_objects
from ._boxes import BoxLayout


class AffineBoxes(FilterArguments, name="_affine_boxes"):
    """Move boxes with their image. Inputs: boxes, float32 (N, 4); the image; the canvas. Outputs: the boxes that are
    left, each the smallest one around its moved corners, cut at the canvas; their numbers, int32.
    """

    inputs = (3, 3)
    outputs = 2
    bbox_layout = arg("str", "xyXY", doc="Numbers of a box: xyXY or xyWH.")
    cases = (
        {"matrix": (0.8, 0.3, 2.0, -0.2, 0.9, 4.0)},
        {"matrix": (-1.0, 0.0, 9.0, 0.0, 1.0, 0.0), "bbox_layout": "xyWH", "min_visibility": 0.5},
        {"matrix": (2.0, 0.0, -9.0, 0.0, 1.5, -3.0), "normalized": True, "min_area": 20.0},
        {"matrix": (1.0, 0.0, 0.0, 0.0, 1.0, 0.0), "window": (2.0, 3.0, 9.0, 8.5)},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rows: samples.Rows = []
        for i, (image, canvas) in enumerate(samples.images(copies=2)):
            rng = np.random.default_rng(i)
            low, extent = rng.uniform(0, 0.6, (4 * i, 2)), rng.uniform(0.05, 0.4, (4 * i, 2))
            boxes = np.concatenate([low, extent if case.get("bbox_layout") == "xyWH" else low + extent], 1)
            rows.append(((boxes * (1 if case.get("normalized") else 14)).astype(np.float32), image, canvas))
        return rows

    def lower(self, c: Lowering, boxes: Value, image: Value, canvas: Value) -> Any:
        require_objects(c, boxes, 4, "boxes")
        layout = BoxLayout.parse(c.const("bbox_layout"), "geometry")
        c.expect(layout.axes == 2, f"expected `bbox_layout` xyXY or xyWH, got {c.const('bbox_layout')!r}")
        kept, index, _ = c.native(
            "affine_boxes", [boxes], [(DType.FLOAT, (None, 4), boxes.layout), (DType.INT32, (None,), "")],
            attrs=((*layout.low, *layout.high), layout.extents),
            params=(*frame_numbers(c, image, canvas), *least_numbers(c)), max_output=boxes.shape[0],
        )  # fmt: skip
        return kept, index

    def reference(self, row: RowContext, boxes: Any, image: Any, canvas: Any) -> Any:
        layout, frame = BoxLayout.parse(row["bbox_layout"], "geometry"), Frame.of(row, image, canvas)
        low, high = (boxes[:, list(at)].astype(np.float64) for at in (layout.low, layout.high))
        high = low + high if layout.extents else high
        if not ((low <= high).all() and np.isfinite(low + high).all()):
            raise ArgumentError("expected finite boxes whose ends are not below their starts")
        corners = [np.stack([x[:, 0], y[:, 1]], 1) for x in (low, high) for y in (low, high)]
        moved = np.stack([frame.move(p) for p in corners])
        start, end = moved.min(0), moved.max(0)
        whole = np.prod(end - start, 1)
        start, end = (np.clip(x, frame.start, frame.end) for x in (start, end))
        left = np.prod(end - start, 1)
        index = [i for i in range(len(boxes)) if keeps(row, whole[i], left[i])]
        start, end = start[index] / frame.unit, end[index] / frame.unit
        out = np.empty((len(index), 4), np.float32)
        out[:, list(layout.low)], out[:, list(layout.high)] = start, end - start if layout.extents else end
        return out, np.array(index, np.int32)
