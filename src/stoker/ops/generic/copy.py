# SPDX-License-Identifier: Apache-2.0
"""``copy``."""

from __future__ import annotations

from typing import Any

from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value


class Copy(Operator, name="copy"):
    """Return the same data. Tensors are immutable, so data are copied only when they leave the pipeline."""

    takes_bfloat16 = True
    cases = ({},)

    def lower(self, c: Lowering, x: Value) -> Value:
        return x

    def reference(self, row: RowContext, x: Any) -> Any:
        return x
