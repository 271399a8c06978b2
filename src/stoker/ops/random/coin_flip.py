# SPDX-License-Identifier: Apache-2.0
"""``random.coin_flip``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType
from ..generic._shape import requested_shape, requested_shape_reference
from ._drawn import COIN, drawn


class CoinFlip(Operator, name="random.coin_flip"):
    """Draw 1 with ``probability``, else 0. Output: a scalar or ``shape``, int32 unless ``dtype`` says else."""

    inputs = (0, 1)
    draws = 1
    probability = arg("float", 0.5, per_row=True, doc="Probability of 1, in [0, 1].")
    dtype = arg("dtype", DType.INT32, doc="Element type of the output.")
    shape = arg("int", None, many=True, per_axis=True, per_row=True, doc="Shape of the output; a scalar if not given.")
    cases = ({}, {"probability": 0.1, "shape": (5,)}, {"dtype": "bool"})

    def lower(self, c: Lowering, *like: Value) -> Value:
        p = c.scalar("probability")
        c.require((p >= 0) & (p <= 1), "expected `probability` in [0, 1], got {0}", p)
        return drawn(c, COIN, c.const("dtype"), requested_shape(c, like), numbers=(p,))

    def reference(self, row: RowContext, *like: Any) -> Any:
        shape = requested_shape_reference(row, like)
        values = [row.stream.uniform() < row.number("probability") for _ in range(int(np.prod(shape)))]
        return np.asarray(values, row["dtype"].numpy).reshape(shape)
