# SPDX-License-Identifier: Apache-2.0
"""Shared code of operators on boxes: their inputs, references, and boxes for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.pixel import load
from ...contract.step import Launches, LaunchPass, Value
from ...contract.types import DType

LABELS_DOC = (
    "Label of each box, whole numbers of shape (N,), as a node or an array. Boxes of different labels do not suppress "
    "each other."
)
_WORD = 64  # boxes that a block compares with as many others (native/device/nms.cuh)
MOST_DOC = "Greatest number of boxes to keep, the best ones; 0: no limit."
THRESHOLD_DOC = "Overlap (intersection over union) above which the box with the lower score is suppressed."


def expect_floats(c: Lowering, x: Value, what: str, rank: int) -> None:
    """Require float32 or float64 with ``rank`` axes."""
    c.expect(x.rank == rank, f"expected {what} with {rank} {'axes' if rank > 1 else 'axis'}, got {x.rank}")
    floats = x.dtype in (DType.FLOAT, DType.FLOAT64)
    c.expect(floats, f"expected {what} of type float32 or float64, got {x.dtype}; `cast` converts them")


def require_columns(c: Lowering, boxes: Value, columns: int) -> None:
    """Require boxes of ``columns`` numbers."""
    text = f"expected boxes of shape (N, {columns}), got {{0}} numbers for each box"
    c.require(ex.equal(boxes.shape[1], columns), text, boxes.shape[1])


def require_scored(c: Lowering, boxes: Value, scores: Value, columns: int = 4) -> None:
    """Require boxes of ``columns`` numbers with their scores."""
    expect_floats(c, boxes, "boxes", 2)
    expect_floats(c, scores, "scores", 1)
    c.expect(boxes.dtype == scores.dtype, f"expected scores of the boxes' type, {boxes.dtype}, got {scores.dtype}")
    require_columns(c, boxes, columns)
    _require_each(c, scores, boxes, "score")


def given_labels(c: Lowering, boxes: Value) -> Value | None:
    """Return the argument ``labels`` as int64; None if it is not given."""
    if not c.given("labels"):
        return None
    edge = c.scope.edges.get("labels")
    if edge is not None:
        return as_labels(c, edge, boxes)
    numbers = c.const("labels")
    wide = next((n for n in numbers if not -(1 << 63) <= n < 1 << 63), None)
    c.expect(wide is None, f"expected labels that int64 holds, got {wide}")
    return as_labels(c, c.constant(np.array(numbers, np.int64)), boxes)


def as_labels(c: Lowering, labels: Value, boxes: Value) -> Value:
    """Return the labels of ``boxes`` as int64."""
    c.expect(labels.rank == 1, f"expected labels with one axis, got {labels.rank}")
    _require_each(c, labels, boxes, "label")
    if labels.dtype == DType.UINT64:  # modulo, so that different labels stay different
        return c.pointwise([labels], load(labels.dtype).convert(DType.INT64))
    return c.cast(labels, DType.INT64)


def _require_each(c: Lowering, x: Value, boxes: Value, what: str) -> None:
    text = f"expected one {what} for each of {{0}} boxes, got {{1}}"
    c.require(ex.equal(x.shape[0], boxes.shape[0]), text, boxes.shape[0], x.shape[0])


def bound(c: Lowering, boxes: Value) -> Scalar:
    """Return the greatest number of boxes that can be kept."""
    most = int(c.const("max_outputs"))
    c.expect(most >= 0, f"expected `max_outputs` >= 0, got {most}")
    return ex.minimum(boxes.shape[0], most) if most else boxes.shape[0]


def suppress(c: Lowering, boxes: Value, scores: Value, labels: Value | None, *, rotated: bool = False) -> Value:
    """Return the numbers of the boxes that are kept, by descending score."""
    inputs = [boxes, scores] if labels is None else [boxes, scores, labels]
    count = boxes.shape[0]
    words = (count + _WORD - 1) // _WORD
    passes = {"order": (count + 255) // 256, "compare": LaunchPass(words * words, _WORD), "keep": LaunchPass(1)}
    # The layout is `Memory` of native/device/own_nms.cuh.
    box_bytes = 5 * 8 if rotated else 4 * boxes.dtype.size
    room = 8 * words * (count + 1) + (2 * 8 + box_bytes + 1) * count
    kept, _ = c.native(
        "nms", inputs, [(DType.INT64, (None,), "")], attrs=(labels is not None, rotated),
        params=(c.scalar("iou_threshold"),), max_output=bound(c, boxes),
        own=Launches("Nms", passes, room, (int(rotated),)),
    )  # fmt: skip
    c.note_numbers(kept, below=count)
    return kept


# ---- references ----


def order_of(scores: Any) -> Any:
    """Return the numbers of the scores in the order of visit: descending, NaN first, stable."""
    return np.lexsort((np.arange(len(scores)), -np.nan_to_num(scores, nan=0.0), ~np.isnan(scores)))


def iou_of(box: Any, others: Any) -> Any:
    """Return the overlaps of one box with others, in their type."""
    with np.errstate(all="ignore"):
        low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
        sides = np.maximum(high - low, 0)
        both = sides[:, 0] * sides[:, 1]
        areas = (others[:, 2] - others[:, 0]) * (others[:, 3] - others[:, 1])
        return both / ((box[2] - box[0]) * (box[3] - box[1]) + areas - both)


def suppressed_reference(row: Any, boxes: Any, scores: Any, labels: Any, overlaps: Any = iou_of) -> Any:
    """Return the numbers of the kept boxes."""
    boxes, scores = np.asarray(boxes), np.asarray(scores)
    groups = np.zeros(len(boxes)) if labels is None else np.asarray(labels).reshape(-1)
    kept: list[int] = []
    for i in order_of(scores):
        rivals = [k for k in kept if groups[k] == groups[i]]
        if not any(overlaps(boxes[k], boxes[i : i + 1])[0] > row.number("iou_threshold") for k in rivals):
            kept.append(int(i))
    return np.array(kept[: row["max_outputs"] or None], np.int64)


# ---- inputs of cases ----


def boxes_in(seed: int, count: int, side: float = 100.0, dtype: str = "float32") -> Any:
    """Return random boxes: x0, y0, x1, y1."""
    rng = np.random.default_rng(seed)
    corner = rng.uniform(0, side, (count, 2))
    return np.concatenate([corner, corner + rng.uniform(5, side / 2, (count, 2))], 1).astype(dtype)


def scores_of(seed: int, count: int, dtype: str = "float32") -> Any:
    """Return random scores, some of them equal."""
    return (np.random.default_rng(seed).integers(0, 40, count) / 40).astype(dtype)
