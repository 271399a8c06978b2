# SPDX-License-Identifier: Apache-2.0
"""``_pooled``: averages over a batch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Compiled, GpuForm, Value
from ...contract.types import DType
from ._reduction import in_lanes

SOURCES = (("stoker_pool_rows", '#include "device/pool_rows.cuh"\n'),)


class Pooled(Operator, name="_pooled"):
    """Average the averages of a batch's rows, weighted by their numbers of elements. Inputs: an average, float32 or
    float64, and the data, of which only the extents are read. Output: float64, the same for all rows.

    The averages of a batch must have the same extents. The sum over the rows has the order of the lanes of reductions
    (`in_lanes`). Rows that have failed and rows that a condition excludes are left out, and the others are numbered
    without gaps.
    """

    hidden = True
    scope = "batch"
    inputs = (2, 2)
    axes = arg("int", many=True, per_axis=True, doc="Axes of the data that were averaged.")
    ddof = arg("int", 0, doc="Subtracted from the number of elements.")

    def lower(self, c: Lowering, average: Value, x: Value) -> Value:
        count = math.prod(x.shape[axis] for axis in c.const("axes"))
        out = c.new_value(DType.FLOAT64, average.shape, average.layout)
        gpu = GpuForm(Compiled(SOURCES))
        c.emit("pool_rows", [average], [out], params=(count, c.const("ddof")), other_rows_of=0, gpu=gpu)
        return out

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        """Average over a whole batch. This is the operator's definition."""
        counts = [math.prod(x.shape[axis] for axis in rows[0]["axes"]) for _, x in inputs]
        terms = [
            average.astype(np.float64) * count if count else np.zeros(average.shape)
            for (average, _), count in zip(inputs, counts, strict=True)
        ]
        total, left = in_lanes(np.stack(terms, -1)), sum(counts) - rows[0]["ddof"]
        pooled = total / left if left > 0 else np.zeros_like(total)
        return [np.copy(pooled) for _ in rows]
