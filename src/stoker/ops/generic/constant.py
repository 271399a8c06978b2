# SPDX-License-Identifier: Apache-2.0
"""``_constant``: a number or an array in a graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value


class Constant(Operator, name="_constant"):
    """Return the same tensor for every row."""

    inputs = (0, 0)
    hidden = True
    value = arg("object", doc="The array.")
    layout = arg("str", "", doc="Names of its axes.")
    cases = ({"value": np.arange(6).reshape(2, 3)},)

    def lower(self, c: Lowering) -> Value:
        return c.constant(c.const("value"), c.const("layout"))

    def reference(self, row: RowContext) -> Any:
        return np.asarray(row["value"])
