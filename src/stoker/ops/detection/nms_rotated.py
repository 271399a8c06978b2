# SPDX-License-Identifier: Apache-2.0
"""``nms_rotated``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ._boxes import (
    LABELS_DOC,
    MOST_DOC,
    THRESHOLD_DOC,
    given_labels,
    require_scored,
    scores_of,
    suppress,
    suppressed_reference,
)
from ._rotated import rotated_in, rotated_iou


class NmsRotated(Operator, name="nms_rotated"):
    """Keep the rotated boxes that no box with a higher score overlaps too much.

    Inputs: boxes ``centre x, centre y, width, height, angle`` of shape (N, 5), and scores (N,), both float32 or both
    float64. The angle is in degrees; all boxes turn the same way, so that the direction does not matter. Output: the
    numbers of the kept boxes by descending score, int64. Overlaps are the areas of the common polygons, computed in
    float64.

    On a GPU the length of a row is known when the batch is done. There, ``fn.gather`` and operators on single elements
    may follow, and with gathered boxes ``fn.roi_align``, ``fn.roi_pool`` and ``fn.box_iou``. Others are refused.
    """

    inputs = (2, 2)
    iou_threshold = arg("float", 0.5, per_row=True, doc=THRESHOLD_DOC)
    labels = arg("int", None, many=True, per_row=True, doc=LABELS_DOC)
    max_outputs = arg("int", 0, doc=MOST_DOC)
    cases = ({"iou_threshold": 0.3}, {"iou_threshold": 0.1, "max_outputs": 3})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.each(*((rotated_in(i, n), scores_of(i, n)) for i, n in enumerate((9, 0, 40))))

    def lower(self, c: Lowering, boxes: Value, scores: Value) -> Value:
        require_scored(c, boxes, scores, 5)
        return suppress(c, boxes, scores, given_labels(c, boxes), rotated=True)

    def reference(self, row: RowContext, boxes: Any, scores: Any) -> Any:
        def overlaps(box: Any, others: Any) -> Any:
            return np.array([rotated_iou(box, other) for other in others])

        return suppressed_reference(row, boxes, scores, row["labels"], overlaps)
