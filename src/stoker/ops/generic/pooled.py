# SPDX-License-Identifier: Apache-2.0
"""``_pooled``: averages over a batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.types import DType


class Pooled(Operator, name="_pooled"):
    """Average the averages of a batch's rows, weighted by their numbers of elements. Inputs: an average, and the
    extents of its data, int64. Output: float64, the same for all rows.
    """

    hidden = True
    devices = ("cpu",)
    scope = "batch"
    inputs = (2, 2)
    axes = arg("int", many=True, doc="Axes of the data that were averaged.")
    ddof = arg("int", 0, doc="Subtracted from the number of elements.")

    def infer(self, c: Lowering, average: Any, extents: Any) -> Spec:
        return Spec(DType.FLOAT64, tuple(n if isinstance(n, int) else None for n in average.shape), average.layout)

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        shapes = {average.shape for average, _ in inputs}
        if len(shapes) > 1:
            error = ValueError(f"expected equal extents along the other axes in a batch, got {sorted(shapes)}")
            return [error for _ in rows]
        counts = [math.prod(int(extents[axis]) for axis in rows[0]["axes"]) for _, extents in inputs]
        total = np.zeros(inputs[0][0].shape)
        for (average, _), count in zip(inputs, counts, strict=True):
            if count:
                total = total + average.astype(np.float64) * count
        left = sum(counts) - rows[0]["ddof"]
        pooled = total / left if left > 0 else np.zeros_like(total)
        return [pooled.copy() for _ in rows]
