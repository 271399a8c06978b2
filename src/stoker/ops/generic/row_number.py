# SPDX-License-Identifier: Apache-2.0
"""``_row_number`` and ``_row_in_branch``: numbers of the rows of a branch of an ``if``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.types import DType


class RowNumber(Operator, name="_row_number"):
    """Return the element of a list at the row's position among the rows of its branch."""

    inputs = (0, 0)
    scope = "batch"
    hidden = True
    numbers = arg("int", many=True, doc="One number for every row of the branch.")

    def infer(self, c: Lowering, *inputs: Any) -> Spec:
        return Spec(DType.INT64, ())

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        """Return a number per row. Only the rows of the branch are there."""
        return [_element(row["numbers"], at, len(rows)) for at, row in enumerate(rows)]

    def reference(self, row: RowContext) -> Any:
        return self.run_rows([row], [()])[0]


def _element(numbers: Any, at: int, count: int) -> Any:
    if count != len(numbers):
        return ValueError(f"expected one index for each of the {count} rows of the branch, got {len(numbers)}")
    return np.asarray(numbers[at], np.int64)


class RowInBranch(Operator, name="_row_in_branch"):
    """Return the position in the batch of the row that has the given number among the rows of the branch."""

    scope = "batch"
    hidden = True

    def infer(self, c: Lowering, *inputs: Any) -> Spec:
        return Spec(DType.INT64, ())

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        """Return a position per row. Only the rows of the branch are there."""
        places = [row.batch_position[0] for row in rows]
        return [_place(places, int(np.asarray(number).reshape(-1)[0])) for (number,) in inputs]

    def reference(self, row: RowContext, number: Any) -> Any:
        return self.run_rows([row], [(number,)])[0]


def _place(places: list[int], number: int) -> Any:
    if not 0 <= number < len(places):
        return IndexError(f"row number {number} is outside the {len(places)} rows of the branch")
    return np.asarray(places[number], np.int64)
