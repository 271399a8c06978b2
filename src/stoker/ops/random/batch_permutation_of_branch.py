# SPDX-License-Identifier: Apache-2.0
"""``_batch_permutation``: ``batch_permutation``, also in a branch of an ``if``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.types import DType
from ._permutation import drawn_permutation


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
        return drawn_permutation(rows, np.asarray(numbered, np.int32))

    def reference(self, row: RowContext) -> Any:
        return self.run_rows([row], [()])[0]
