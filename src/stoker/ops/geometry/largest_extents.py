# SPDX-License-Identifier: Apache-2.0
"""``_largest_extents``: the largest extents of a batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.types import DType


class LargestExtents(Operator, name="_largest_extents"):
    """Return the largest extents over the rows of a batch. Input: each row's extents, int64 (N,). Output: the same."""

    hidden = True
    devices = ("cpu",)
    scope = "batch"

    def infer(self, c: Lowering, extents: Any) -> Spec:
        return Spec(DType.INT64, extents.shape)

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        largest = np.max([extents for (extents,) in inputs], axis=0)
        return [largest.copy() for _ in rows]
