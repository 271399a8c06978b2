# SPDX-License-Identifier: Apache-2.0
"""``batch_permutation``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ._permutation import drawn_permutation


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
        return drawn_permutation(rows, np.asarray([row.batch_position[0] for row in rows], np.int32))

    def reference(self, row: RowContext) -> Any:
        return self.run_rows([row], [()])[0]
