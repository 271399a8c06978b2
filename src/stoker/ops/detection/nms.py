# SPDX-License-Identifier: Apache-2.0
"""``nms``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ._boxes import (
    LABELS_DOC,
    MOST_DOC,
    THRESHOLD_DOC,
    boxes_in,
    given_labels,
    require_scored,
    scores_of,
    suppress,
    suppressed_reference,
)


class Nms(Operator, name="nms"):
    """Keep the boxes that no box with a higher score overlaps too much (non-maximum suppression).

    Inputs: boxes ``x0, y0, x1, y1`` of shape (N, 4), and scores (N,), both float32 or both float64. Output: the numbers
    of the kept boxes by descending score, int64. Rows have different lengths. ``fn.gather`` takes the boxes and their
    labels.

    The numbers are those of torchvision's CPU kernel. Boxes are visited by descending score, NaN first, equal scores in
    their order. Overlaps are computed in the boxes' type and compared with the threshold in float64. With ``labels``,
    boxes of other labels are not compared at all: torchvision's ``batched_nms`` shifts them apart by coordinates if
    there are few, which rounds differently.

    On a GPU the length of a row is known when the batch is done. There, ``fn.gather`` and operators on single elements
    may follow, and with gathered boxes ``fn.roi_align``, ``fn.roi_pool`` and ``fn.box_iou``. Others are refused.
    """

    inputs = (2, 2)
    iou_threshold = arg("float", 0.5, per_row=True, doc=THRESHOLD_DOC)
    labels = arg("int", None, many=True, per_row=True, doc=LABELS_DOC)
    max_outputs = arg("int", 0, doc=MOST_DOC)
    cases = ({}, {"iou_threshold": 0.1, "max_outputs": 3})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.each(*((boxes_in(i, n), scores_of(i, n)) for i, n in enumerate((9, 0, 60, 1))))

    def lower(self, c: Lowering, boxes: Value, scores: Value) -> Value:
        require_scored(c, boxes, scores)
        return suppress(c, boxes, scores, given_labels(c, boxes))

    def reference(self, row: RowContext, boxes: Any, scores: Any) -> Any:
        return suppressed_reference(row, boxes, scores, row["labels"])
