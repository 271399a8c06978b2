# SPDX-License-Identifier: Apache-2.0
"""``box_encoder``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Launches, Value, ViewOp
from ...contract.types import DType

_MOST_ANCHORS = 1 << 20
_LARGEST = float(np.finfo(np.float32).max)


class BoxEncoder(Operator, name="box_encoder"):
    """Turn the boxes of an image into a target for each anchor of a detector such as SSD. Inputs: boxes (left, top,
    right, bottom), float32 (N, 4); their labels, int32 (N,) or (N, 1). Outputs: a box (centre x, centre y, width,
    height) for each anchor, float32 (M, 4); a label for each, int32 (M,).

    A box belongs to the anchor with the largest IoU, and to each anchor whose IoU with it exceeds ``criteria`` and is
    the largest of the anchor; of equal ones the last counts. All other anchors get label 0 and their own box; with
    ``offset`` zeros. IoU is computed in float32. Boxes and labels of different numbers, and no anchors, are refused.
    """

    inputs = (2, 2)
    outputs = 2
    exactness = "the same bits on CPU and GPU; the reference's logarithm may differ in the last place"
    anchors = arg("float", many=True, doc="Boxes (left, top, right, bottom) of all anchors, one after another.")
    criteria = arg("float", 0.5, doc="IoU that a match exceeds, from 0 to 1.")
    means = arg("float", (0.0,) * 4, many=True, doc="Subtracted from offsets: x, y, width, height.")
    offset = arg("bool", False, doc="Targets are offsets from their anchors.")
    scale = arg("float", 1.0, doc="Factor of boxes and anchors before offsets are computed.")
    stds = arg("float", (1.0,) * 4, many=True, doc="Divisors of offsets.")
    cases = (
        {"anchors": tuple(k / 8 + d for k in range(5) for d in (0.0, 0.1, 0.3, 0.45)), "criteria": 0.3},
        {
            "anchors": tuple(k / 8 + d for k in range(5) for d in (0.0, 0.1, 0.3, 0.45)), "criteria": 0.1,
            "offset": True, "scale": 300.0, "means": (0.1, 0.0, 0.2, 0.0), "stds": (0.1, 0.1, 0.2, 0.2),
        },
    )  # fmt: skip

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rows: samples.Rows = []
        for i, n in enumerate((3, 0, 9)):
            rng = np.random.default_rng(i)
            low, extent = rng.uniform(0, 0.6, (n, 2)), rng.uniform(0.1, 0.4, (n, 2))
            boxes = np.concatenate([low, low + extent], 1).astype(np.float32)
            rows.append((boxes, np.arange(1, n + 1, dtype=np.int32)))
        return rows

    def validate(self, args: Mapping[str, Any]) -> None:
        wide = np.asarray(args["anchors"], np.float64)
        anchors = np.where(np.abs(wide) <= _LARGEST, wide, np.inf).astype(np.float32)
        if not anchors.size or anchors.size % 4 or anchors.size > 4 * _MOST_ANCHORS:
            text = f"expected `anchors` of four numbers each, at least one and at most {_MOST_ANCHORS} anchors"
            raise ArgumentError(f"`box_encoder`: {text}, got {anchors.size} numbers")
        corners = anchors.reshape(-1, 4)
        if not np.isfinite(anchors).all() or (corners[:, 2:] <= corners[:, :2]).any():
            raise ArgumentError("`box_encoder`: expected finite `anchors` whose ends lie above their starts")
        for name in ("means", "stds"):
            numbers = args[name]
            if len(numbers) != 4 or not all(abs(x) <= _LARGEST for x in numbers):
                raise ArgumentError(f"`box_encoder`: expected four numbers of float32 as `{name}`, got {numbers}")
        if not np.asarray(args["stds"], np.float32).all():
            raise ArgumentError(f"`box_encoder`: expected `stds` other than 0, got {args['stds']}")
        if not 0 <= args["criteria"] <= 1:
            raise ArgumentError(f"`box_encoder`: expected `criteria` from 0 to 1, got {args['criteria']}")
        if not 0 < args["scale"] <= _LARGEST or np.float32(args["scale"]) == 0:
            raise ArgumentError(f"`box_encoder`: expected a finite `scale` above 0, got {args['scale']}")

    def lower(self, c: Lowering, boxes: Value, labels: Value) -> tuple[Value, ...]:
        c.expect(
            boxes.dtype == DType.FLOAT and boxes.rank == 2,
            f"expected boxes of float32 with two axes, got {boxes.dtype} with {boxes.rank}",
        )
        c.expect(
            labels.dtype == DType.INT32 and labels.rank in (1, 2),
            f"expected labels of int32 with one or two axes, got {labels.dtype} with {labels.rank}. Cast them",
        )
        c.require(ex.equal(boxes.shape[1], 4), "expected boxes of 4 numbers, got {0}", boxes.shape[1])
        if labels.rank == 2:
            c.require(ex.equal(labels.shape[1], 1), "expected one label for each box, got {0}", labels.shape[1])
            labels = c.view(labels, [ViewOp("slice", 1, 0, 1, 1), ViewOp("drop", 1)])
        text = "expected a label for each of {0} boxes, got {1}"
        c.require(ex.equal(labels.shape[0], boxes.shape[0]), text, boxes.shape[0], labels.shape[0])
        corners = np.asarray(c.const("anchors"), np.float32).reshape(-1, 4)
        anchors = c.constant(corners)
        count, offset = len(corners), c.const("offset")
        numbers = (c.const("criteria"), c.const("scale"), *c.const("means"), *c.const("stds"))
        passes = {"boxes": boxes.shape[0], "anchors": (count + 255) // 256}
        own = Launches("BoxEncoder", passes, 4 * boxes.shape[0], (int(offset),))
        outputs = [(DType.FLOAT, (count, 4), ""), (DType.INT32, (count,), "")]
        return c.native(
            "box_encoder", [boxes, labels, anchors], outputs, attrs=(offset,), params=numbers, own=own
        )  # fmt: skip

    def reference(self, row: RowContext, boxes: Any, labels: Any) -> Any:
        anchors = np.asarray(row["anchors"], np.float32).reshape(-1, 4)
        targets, found = _centred(anchors), np.zeros(len(anchors), np.int32)
        offset = row["offset"]
        matched = np.zeros(len(anchors), bool)
        if len(boxes):
            iou = _iou(boxes, anchors)
            own = iou.shape[1] - 1 - np.argmax(iou[:, ::-1], axis=1)
            iou[np.arange(len(boxes)), own] = 2
            best = len(boxes) - 1 - np.argmax(iou[::-1], axis=0)
            matched = iou[best, np.arange(len(anchors))] > np.float32(row["criteria"])
            box, anchor = _centred(boxes)[best], targets.copy()
            if offset:
                scale, means, stds = (np.asarray(row[k], np.float32) for k in ("scale", "means", "stds"))
                places = (box[:, :2] * scale - anchor[:, :2] * scale) / (anchor[:, 2:] * scale)
                ratios = box[:, 2:] * scale / (anchor[:, 2:] * scale)
                logs = np.log(ratios.astype(np.float64)).astype(np.float32)
                box = (np.concatenate([places, logs], 1) - means) / stds
            targets[matched] = box[matched]
            found[matched] = labels.reshape(-1)[best][matched]
        if offset:
            targets[~matched] = 0
        return targets, found


def _centred(boxes: Any) -> Any:
    low, high = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([(low + high) * np.float32(0.5), high - low], 1)


def _iou(boxes: Any, anchors: Any) -> Any:
    low = np.maximum(boxes[:, None, :2], anchors[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], anchors[None, :, 2:])
    sides = high - low
    common = np.where((sides > 0).all(2), sides[..., 0] * sides[..., 1], np.float32(0))
    areas = [(b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1]) for b in (boxes, anchors)]
    with np.errstate(invalid="ignore", divide="ignore"):
        whole = areas[0][:, None] + areas[1][None] - common
        return np.where(common > 0, common / whole, np.float32(0))
