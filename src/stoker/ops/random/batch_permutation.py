# SPDX-License-Identifier: Apache-2.0
"""``batch_permutation``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.types import DType


class BatchPermutation(Operator, name="batch_permutation"):
    """Draw a permutation of the batch: a row number per row, int32, for ``permute_batch``.

    Every row draws a number, and the order of these numbers gives the permutation. It depends on which rows share the
    batch. Runs in Python.
    """

    devices = ("cpu",)
    inputs = (0, 0)
    scope = "batch"
    draws = 1
    allow_repetitions = arg("bool", False, doc="Draw every index by itself: some rows twice, some not at all.")
    no_fixed_points = arg("bool", False, doc="No row gets its own number.")
    cases = ({}, {"no_fixed_points": True}, {"allow_repetitions": True})

    def infer(self, c: Lowering, *inputs: Any) -> Spec:
        return Spec(DType.INT32, ())

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        """Return one index per row. Only active rows draw."""
        if not rows:
            return []
        places = np.asarray([row.batch_position[0] for row in rows], np.int32)
        drawn = np.asarray([row.stream.uniform() for row in rows])
        apart = rows[0]["no_fixed_points"]
        count = len(rows)
        if apart and count == 1:
            return [ValueError("expected at least two rows for a permutation without fixed points, got one")]
        if rows[0]["allow_repetitions"]:
            others = (drawn * (count - apart)).astype(np.int64)
            return list(places[others + (apart & (others >= np.arange(count)))])
        order = np.argsort(drawn, kind="stable")
        taken = np.empty(count, np.int32)
        # A row gets the rank of its draw; without fixed points, the next row in that order.
        if apart:
            taken[order] = places[np.roll(order, -1)]
        else:
            taken[:] = places[order]
        return list(taken)

    def reference(self, row: RowContext) -> Any:
        return self.run_rows([row], [()])[0]
