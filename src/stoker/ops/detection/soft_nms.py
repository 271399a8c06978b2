# SPDX-License-Identifier: Apache-2.0
"""``soft_nms``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Launches, LaunchPass, Value
from ...contract.types import DType
from ...native import _native
from ._boxes import LABELS_DOC, MOST_DOC, bound, boxes_in, given_labels, iou_of, require_scored, scores_of

_METHODS = ("linear", "gaussian")


class SoftNms(Operator, name="soft_nms"):
    """Lower the scores of boxes that better boxes overlap, and drop those whose score becomes too low (Soft-NMS).

    Inputs: boxes ``x0, y0, x1, y1`` of shape (N, 4), and scores (N,), both float32 or both float64. Outputs: the
    numbers of the boxes in the order in which they are selected, int64, and their scores then, in the type of the
    boxes. Rows have different lengths.

    The box with the highest remaining score is selected, of equal ones the first. Then the score of each other box is
    multiplied by ``1 - IoU`` if the overlap IoU is above ``iou_threshold`` ("linear"), or by ``exp(-IoU**2 / sigma)``
    ("gaussian"). Boxes below ``min_score`` are dropped, also those that never had more, and those with NaN.

    On a GPU the length of a row is known when the batch is done. There, ``fn.gather`` and operators on single elements
    may follow, and with gathered boxes ``fn.roi_align``, ``fn.roi_pool`` and ``fn.box_iou``. Others are refused.
    """

    inputs = (2, 2)
    outputs = 2
    method = arg("str", "gaussian", choices=_METHODS, doc="Decay of the scores: linear or gaussian.")
    iou_threshold = arg("float", 0.5, per_row=True, doc='Overlap above which "linear" lowers the score.')
    sigma = arg("float", 0.5, per_row=True, doc='Width of "gaussian"; above 0.')
    min_score = arg("float", 0.001, per_row=True, doc="Score below which a box is dropped.")
    labels = arg("int", None, many=True, per_row=True, doc=LABELS_DOC)
    max_outputs = arg("int", 0, doc=MOST_DOC)
    cases = (
        {},
        {"method": "linear", "iou_threshold": 0.2, "min_score": 0.1},
        {"sigma": 0.1, "min_score": 0.2, "max_outputs": 4},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.each(*((boxes_in(i, n), scores_of(i, n)) for i, n in enumerate((9, 0, 40, 1))))

    def lower(self, c: Lowering, boxes: Value, scores: Value) -> tuple[Value, ...]:
        require_scored(c, boxes, scores)
        labels, sigma = given_labels(c, boxes), c.scalar("sigma")
        c.require(sigma > 0, "expected `sigma` above 0, got {0}", sigma)
        inputs = [boxes, scores] if labels is None else [boxes, scores, labels]
        method = _METHODS.index(c.const("method"))
        room = (8 + 5 * boxes.dtype.size + 1) * boxes.shape[0]
        own = Launches("SoftNms", {"select": LaunchPass(1)}, room, (method,))
        kept, decayed, _ = c.native(
            "soft_nms", inputs, [(DType.INT64, (None,), ""), (boxes.dtype, (None,), "")],
            attrs=(labels is not None, method),
            params=(c.scalar("iou_threshold"), sigma, c.scalar("min_score")), max_output=bound(c, boxes), own=own,
        )  # fmt: skip
        c.note_numbers(kept, below=boxes.shape[0])
        return kept, decayed

    def reference(self, row: RowContext, boxes: Any, scores: Any) -> Any:
        boxes, left = np.asarray(boxes), np.array(scores)
        labels = np.zeros(len(boxes)) if row["labels"] is None else np.asarray(row["labels"]).reshape(-1)
        least = left.dtype.type(row.number("min_score"))
        left[~(left >= least)] = -np.inf
        kept: list[int] = []
        found: list[Any] = []
        while len(left) and left.max() > -np.inf and len(kept) < (row["max_outputs"] or len(left)):
            best = int(left.argmax())
            kept.append(best)
            found.append(left[best])
            left[best] = -np.inf
            others = np.flatnonzero((left > -np.inf) & (labels == labels[best]))
            iou = iou_of(boxes[best], boxes[others])
            if row["method"] == "linear":
                weights = np.where(iou > row.number("iou_threshold"), 1 - iou, 1).astype(left.dtype)
            else:
                exponents = -(iou.astype(np.float64) ** 2) / row.number("sigma")
                weights = _native.xmath("exp", np.ascontiguousarray(exponents)).astype(left.dtype)
            left[others] *= np.where(iou > 0, weights, 1).astype(left.dtype)
            left[~(left >= least)] = -np.inf
        return np.array(kept, np.int64), np.array(found, left.dtype)
