# SPDX-License-Identifier: Apache-2.0
"""``random.normal``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType
from ..generic._shape import requested_shape, requested_shape_reference
from ..generic.cast import cast_array
from ._drawn import NORMAL, drawn


class Normal(Operator, name="random.normal"):
    """Draw from the normal distribution. Output: a scalar, ``shape`` or the input's shape, float32.

    Source: Box and Muller's method, computed in double and rounded to ``dtype`` once.
    """

    inputs = (0, 1)
    draws = 1
    exactness = "the same bits on every machine; the reference's logarithm and cosine may differ in the last place"
    mean = arg("float", 0.0, per_row=True, doc="Mean.")
    stddev = arg("float", 1.0, per_row=True, doc="Standard deviation, at least 0.")
    dtype = arg("dtype", None, doc="Element type of the output; FLOAT by default.")
    shape = arg("int", None, many=True, per_axis=True, per_row=True, doc="Shape of the output; a scalar if not given.")
    cases = ({}, {"mean": 10.0, "stddev": 2.0, "shape": (4,)}, {"stddev": 20.0, "dtype": "int32"})

    def lower(self, c: Lowering, *like: Value) -> Value:
        dtype = DType.FLOAT if c.const("dtype") is None else c.const("dtype")
        mean, stddev = c.scalar("mean"), c.scalar("stddev")
        c.require(ex.isfinite(mean), "expected a finite `mean`, got {0}", mean)
        c.require(ex.both(ex.isfinite(stddev), stddev >= 0), "expected a finite `stddev` >= 0, got {0}", stddev)
        return drawn(c, NORMAL, dtype, requested_shape(c, like), numbers=(mean, stddev))

    def reference(self, row: RowContext, *like: Any) -> Any:
        shape = requested_shape_reference(row, like)
        drawn = []
        for _ in range(int(np.prod(shape))):
            radius = math.sqrt(-2.0 * math.log(1.0 - row.stream.uniform()))
            drawn.append(row.number("mean") + row.number("stddev") * radius * math.cos(math.tau * row.stream.uniform()))
        dtype = DType.FLOAT if row["dtype"] is None else row["dtype"]
        return cast_array(np.asarray(drawn, np.float64), dtype).reshape(shape)
