# SPDX-License-Identifier: Apache-2.0
"""``batch_permutation``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.step import Value
from ...contract.types import DType


class BatchPermutation(Operator, name="batch_permutation"):
    """Draw a permutation of the batch: a row number per row, int32, for ``permute_batch``.

    Every row draws a number, and the order of these numbers gives the permutation. It depends on which rows share the
    batch. In a branch of an ``if``, the branch's rows are the batch, and numbered from 0. Runs in Python.
    """

    devices = ("cpu",)
    inputs = (0, 0)
    scope = "batch"
    draws = 1
    allow_repetitions = arg("bool", False, doc="Draw every index by itself: some rows twice, some not at all.")
    no_fixed_points = arg("bool", False, doc="No row gets its own number.")
    cases = ({}, {"no_fixed_points": True}, {"allow_repetitions": True})

    def lower(self, c: Lowering) -> Value:
        given = {name: c.const(name) for name in ("allow_repetitions", "no_fixed_points")}
        result: Value = c.apply("_batch_permutation", in_branch=bool(c.scope.guards), **given)
        return result

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        """Return one index per row. Only active rows draw."""
        return _drawn(rows, np.asarray([row.batch_position[0] for row in rows], np.int32))

    def reference(self, row: RowContext) -> Any:
        return self.run_rows([row], [()])[0]


class BatchPermutationOfBranch(Operator, name="_batch_permutation"):
    """Draw a permutation of the batch, or of the rows of a branch."""

    inputs = (0, 0)
    scope = "batch"
    hidden = True
    draws = 1
    allow_repetitions = arg("bool", False, doc="Draw every index by itself.")
    no_fixed_points = arg("bool", False, doc="No row gets its own number.")
    in_branch = arg("bool", False, doc="Number the rows of the branch from 0.")

    def infer(self, c: Lowering, *inputs: Any) -> Spec:
        return Spec(DType.INT32, ())

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        """Return one index per row. Only active rows draw."""
        numbered = [at if row["in_branch"] else row.batch_position[0] for at, row in enumerate(rows)]
        return _drawn(rows, np.asarray(numbered, np.int32))

    def reference(self, row: RowContext) -> Any:
        return self.run_rows([row], [()])[0]


def _drawn(rows: list[RowContext], places: Any) -> list[Any]:
    """Return a permutation of ``places``, an element per row."""
    if not rows:
        return []
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
