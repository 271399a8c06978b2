# SPDX-License-Identifier: Apache-2.0
"""``batched_nms``."""

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
    MOST_DOC,
    THRESHOLD_DOC,
    as_labels,
    boxes_in,
    require_scored,
    scores_of,
    suppress,
    suppressed_reference,
)


class BatchedNms(Operator, name="batched_nms"):
    """Keep the boxes that no box of the same label with a higher score overlaps too much.

    Inputs: boxes ``x0, y0, x1, y1`` of shape (N, 4), scores (N,), and labels (N,), whole numbers. Output: the numbers
    of the kept boxes by descending score, int64. This is ``nms(boxes, scores, labels=labels)``.

    On a GPU the length of a row is known when the batch is done. There, ``fn.gather`` and operators on single elements
    may follow, and with gathered boxes ``fn.roi_align``, ``fn.roi_pool`` and ``fn.box_iou``. Others are refused.
    """

    inputs = (3, 3)
    iou_threshold = arg("float", 0.5, per_row=True, doc=THRESHOLD_DOC)
    max_outputs = arg("int", 0, doc=MOST_DOC)
    cases = ({}, {"iou_threshold": 0.1, "max_outputs": 5})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rng = np.random.default_rng(7)
        rows = [(boxes_in(i, n), scores_of(i, n), rng.integers(-1, 3, n)) for i, n in enumerate((9, 0, 60))]
        wide = rng.integers(-(1 << 62), 1 << 62, 5).repeat(4)  # labels too far apart for a table
        return samples.each(*rows, (boxes_in(4, 20), scores_of(4, 20), wide))

    def lower(self, c: Lowering, boxes: Value, scores: Value, labels: Value) -> Value:
        require_scored(c, boxes, scores)
        c.expect(not labels.dtype.is_float, f"expected labels of an integer type, got {labels.dtype}")
        return suppress(c, boxes, scores, as_labels(c, labels, boxes))

    def reference(self, row: RowContext, boxes: Any, scores: Any, labels: Any) -> Any:
        return suppressed_reference(row, boxes, scores, labels)
