# SPDX-License-Identifier: Apache-2.0
"""``_row_number``: a number for each position in the batch."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.types import DType


class RowNumber(Operator, name="_row_number"):
    """Return the element of a list at the row's position in its batch."""

    inputs = (0, 0)
    scope = "batch"
    hidden = True
    numbers = arg("int", many=True, doc="One number for every row of the batch.")

    def infer(self, c: Lowering, *inputs: Any) -> Spec:
        return Spec(DType.INT64, ())

    def reference(self, row: RowContext) -> Any:
        at, count = row.batch_position
        numbers = row["numbers"]
        if count != len(numbers):
            raise ValueError(f"expected one index for each of the {count} rows of the batch, got {len(numbers)}")
        return np.asarray(numbers[at], np.int64)
