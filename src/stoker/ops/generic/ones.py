# SPDX-License-Identifier: Apache-2.0
"""``ones``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType
from ._shape import requested_shape, requested_shape_reference
from .full import filled


class Ones(Operator, name="ones"):
    """Create a tensor of ones. Output: ``shape``; a scalar if it is not given."""

    inputs = (0, 0)
    gives_bfloat16 = True
    shape = arg("int", None, many=True, per_axis=True, per_row=True, doc="Shape of the output; a scalar if not given.")
    dtype = arg("dtype", DType.INT32, doc="Element type of the output.")
    layout = arg("str", None, doc="Names of the output's axes.")
    cases = ({"shape": (2, 3)}, {"dtype": "float32"})

    def lower(self, c: Lowering) -> Value:
        return filled(c, 1, c.const("dtype"), requested_shape(c, ()), c.const("layout") or "")

    def reference(self, row: RowContext) -> Any:
        return np.ones(requested_shape_reference(row, ()), row["dtype"].numpy)
