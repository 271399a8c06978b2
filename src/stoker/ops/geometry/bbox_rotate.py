# SPDX-License-Identifier: Apache-2.0
"""``bbox_rotate``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType
from ..generic.gather import gathered
from ._boxes import BoxLayout
from ._warp import requested_size
from .rotate import canvas, turn

_MODES = ("expand", "fixed", "halfway")


class BBoxRotate(Operator, name="bbox_rotate"):
    """Rotate bounding boxes with their image (`rotate`). Inputs: boxes, float32 (N, 4); optionally N labels, any type.
    Outputs: the boxes that are left, each the smallest one around its rotated corners, on the canvas of `rotate`; their
    labels, if there are any.

    Boxes are cut at the canvas. A box is dropped if less than ``remove_threshold`` of its area is left, or nothing.
    ``mode`` "fixed" shrinks a box to the size that it had, with its longer side along the longer side of the rotated
    box; "halfway" is between both. Computed in double and rounded once. The operator runs on the CPU, as in DALI: a row
    has few boxes.
    """

    devices = ("cpu",)
    inputs = (1, 2)
    angle = arg("float", per_row=True, doc="Angle in degrees, counter-clockwise.")
    input_shape = arg(
        "int", many=True, per_axis=True, per_row=True, doc="Size of the image in pixels; channels may follow."
    )
    bbox_layout = arg("str", "xyXY", doc="Numbers of a box: xyXY or xyWH.")
    bbox_normalized = arg("bool", True, doc="Boxes are relative to the image, else in pixels.")
    keep_size = arg("bool", False, doc="The canvas has the image's size.")
    mode = arg("str", "expand", choices=_MODES, doc="Size of the boxes: expand, fixed or halfway.")
    remove_threshold = arg("float", 0.1, doc="Least share of a box within the canvas.")
    shape_layout = arg("str", "HW", doc="Order of `input_shape`: HW or WH, with or without C.")
    size = arg(
        "float", None, many=True, per_axis=True, per_row=True, doc="Size of the canvas in pixels, (height, width)."
    )
    cases = (
        {"angle": 30.0, "input_shape": (100, 80)},
        {"angle": -50.0, "input_shape": (60, 90, 3), "keep_size": True, "mode": "fixed", "remove_threshold": 0.6},
        {
            "angle": 80.0, "input_shape": (120, 70), "shape_layout": "WH", "size": (50, 90), "mode": "halfway",
            "bbox_layout": "xyWH",
        },
        {"angle": 90.0, "input_shape": (2, 2), "bbox_normalized": False},
    )  # fmt: skip

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rows: samples.Rows = []
        for i, n in enumerate((5, 0, 9)):
            rng = np.random.default_rng(i)
            low, extent = rng.uniform(0, 0.7, (n, 2)), rng.uniform(0.05, 0.3, (n, 2))
            second = extent if case.get("bbox_layout") == "xyWH" else low + extent
            rows.append((np.concatenate([low, second], 1).astype(np.float32), np.arange(n, dtype=np.int64)[:, None]))
        return rows

    def count_outputs_with(self, args: Mapping[str, Any], inputs: int) -> int:
        return inputs

    def arrange_outputs(self, args: Mapping[str, Any], outputs: Sequence[Any]) -> Any:
        return tuple(outputs) if len(outputs) > 1 else outputs[0]

    def validate(self, args: Mapping[str, Any]) -> None:
        least = args["remove_threshold"]
        if not 0 <= least <= 1:
            raise ArgumentError(f"`bbox_rotate`: expected `remove_threshold` from 0 to 1, got {least}")
        if sorted(args["shape_layout"].replace("C", "")) != ["H", "W"]:
            raise ArgumentError(f"`bbox_rotate`: expected `shape_layout` HW or WH, got {args['shape_layout']!r}")

    def lower(self, c: Lowering, boxes: Value, *labels: Value) -> Any:
        c.expect(
            boxes.dtype == DType.FLOAT and boxes.rank == 2,
            f"expected boxes of float32 with two axes, got {boxes.dtype} with {boxes.rank}",
        )
        layout = BoxLayout.parse(c.const("bbox_layout"), "bbox_rotate")
        c.expect(layout.axes == 2, f"expected `bbox_layout` xyXY or xyWH, got {c.const('bbox_layout')!r}")
        c.require(ex.equal(boxes.shape[1], 4), "expected boxes of 4 numbers, got {0}", boxes.shape[1])
        for x in labels:
            c.expect(x.rank > 0, "expected labels with an axis, got a single one")
            text = "expected a label for each of {0} boxes, got {1}"
            c.require(ex.equal(x.shape[0], boxes.shape[0]), text, boxes.shape[0], x.shape[0])
        count = c.fixed_length("input_shape")
        c.expect(count in (2, 3), f"expected `input_shape` as (height, width), got {count} numbers")
        height, width = (c.scalar("input_shape", c.const("shape_layout").index(a)) for a in "HW")
        for n in (height, width):
            c.require(ex.both(n >= 1, n <= 1 << 24), "expected `input_shape` of 1 to 2**24 pixels, got {0}", n)
        angle = c.scalar("angle")
        c.require(ex.isfinite(angle), "expected a finite `angle`, got {0}", angle)
        cos, sin = turn(angle)
        out_height, out_width = self._canvas(c, cos, sin, height, width)
        kept, index, _ = c.native(
            "bbox_rotate", [boxes], [(DType.FLOAT, (None, 4), boxes.layout), (DType.INT32, (None,), "")],
            attrs=(
                _MODES.index(c.const("mode")), (*layout.low, *layout.high), layout.extents, c.const("bbox_normalized"),
            ),
            params=(cos, sin, height, width, out_height, out_width, c.const("remove_threshold")),
            max_output=boxes.shape[0],
        )  # fmt: skip
        return (kept, *(gathered(c, x, index, argument="labels") for x in labels))

    @staticmethod
    def _canvas(c: Lowering, cos: Any, sin: Any, height: Any, width: Any) -> tuple[Any, Any]:
        if c.given("size"):
            c.expect(not c.const("keep_size"), "expected `size` or `keep_size`, got both")
            return requested_size(c)
        return (height, width) if c.const("keep_size") else canvas(cos, sin, height, width)

    def reference(self, row: RowContext, boxes: Any, *labels: Any) -> Any:
        layout = BoxLayout.parse(row["bbox_layout"], "bbox_rotate")
        height, width = (row.number("input_shape", row["shape_layout"].index(a)) for a in "HW")
        theta = math.radians(row.number("angle") % 360)
        cos, sin = round(math.cos(theta), 15), round(math.sin(theta), 15)
        if row["size"] is not None:
            size = np.array([math.floor(row.number("size", i) + 0.5) for i in (1, 0)], np.float64)
        else:
            kept = (height, width) if row["keep_size"] else canvas(cos, sin, height, width)
            size = np.array(kept[::-1], np.float64)
        image = np.array([width, height])
        low, high = (boxes[:, list(at)].astype(np.float64) for at in (layout.low, layout.high))
        high = high + low if layout.extents else high
        if row["bbox_normalized"]:
            low, high = low * image, high * image
        start, end = self._turned(row["mode"], cos, sin, low, high, image, size)
        whole = np.prod(end - start, 1)
        start, end = np.clip(start, 0, size), np.clip(end, 0, size)
        left = np.prod(end - start, 1)
        index = np.flatnonzero((left > 0) & (left >= row["remove_threshold"] * whole))
        scale = size if row["bbox_normalized"] else 1.0
        start, end = start[index] / scale, end[index] / scale
        out = np.empty((len(index), 4), np.float32)
        out[:, list(layout.low)], out[:, list(layout.high)] = start, end - start if layout.extents else end
        return (out, *(x[index] for x in labels))

    @staticmethod
    def _turned(mode: str, cos: float, sin: float, low: Any, high: Any, image: Any, size: Any) -> tuple[Any, Any]:
        sides = [low - image / 2, high - image / 2]
        corners = [(sides[i & 1][:, 0], sides[i >> 1][:, 1]) for i in range(4)]
        turned = [np.stack([cos * x + sin * y, cos * y - sin * x], 1) + size / 2 for x, y in corners]
        start, end = np.min(turned, 0), np.max(turned, 0)
        if mode == "expand":
            return start, end
        own, now = high - low, end - start
        flipped = (own[:, :1] > own[:, 1:]) != (now[:, :1] > now[:, 1:])
        off = (now - np.where(flipped, own[:, ::-1], own)) / (2 if mode == "fixed" else 4)
        return start + off, end - off
