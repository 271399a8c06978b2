# SPDX-License-Identifier: Apache-2.0
"""``zeros_like``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from .full import filled


class ZerosLike(Operator, name="zeros_like"):
    """Create a tensor of zeros with the input's shape and layout.

    Output: the input's type unless ``dtype`` is given.
    """

    gives_bfloat16 = takes_bfloat16 = True
    dtype = arg("dtype", None, doc="Element type of the output; by default the input's.")
    cases = ({}, {"dtype": "float32"})

    def lower(self, c: Lowering, like: Value) -> Value:
        dtype = c.const("dtype")
        return filled(c, 0, like.dtype if dtype is None else dtype, like.shape, like.layout)

    def reference(self, row: RowContext, like: Any) -> Any:
        return np.zeros(like.shape, like.dtype if row["dtype"] is None else row["dtype"].numpy)
