# SPDX-License-Identifier: Apache-2.0
"""``random.beta``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.random import Stream
from ...contract.step import Value
from ...contract.types import DType
from ..generic._shape import requested_shape, requested_shape_reference

_BETA = 4  # number of the distribution in native/shared/draws.hpp


class Beta(Operator, name="random.beta"):
    """Draw from the beta distribution: the weights of `mixup`. Output: numbers in [0, 1], a scalar, ``shape`` or the
    input's shape.

    Source: the quotient of two gamma variates, as logarithms, so that small ``alpha`` and ``beta`` do not underflow
    (Marsaglia and Tsang, "A simple method for generating gamma variables", 2000). Computed in double and rounded once.
    """

    devices = ("cpu",)
    inputs = (0, 1)
    draws = 1
    exactness = "the same bits on every machine; the reference's logarithms may differ in the last place"
    alpha = arg("float", 1.0, per_row=True, doc="First parameter, above 0.")
    beta = arg("float", 1.0, per_row=True, doc="Second parameter, above 0.")
    dtype = arg("dtype", DType.FLOAT, doc="Element type of the output, a floating-point type.")
    shape = arg("int", None, many=True, per_axis=True, per_row=True, doc="Shape of the output; a scalar if not given.")
    cases = ({}, {"alpha": 2.0, "beta": 0.5, "shape": (6,)}, {"alpha": 0.2, "beta": 0.2, "dtype": "float64"})

    def lower(self, c: Lowering, *like: Value) -> Value:
        dtype = c.const("dtype")
        c.expect(dtype.is_float and dtype != DType.BFLOAT16, f"expected a floating-point `dtype`, got {dtype}")
        numbers = []
        for name in ("alpha", "beta"):
            x = c.scalar(name)
            c.require(ex.both(ex.isfinite(x), x > 0), f"expected a finite `{name}` above 0, got {{0}}", x)
            numbers.append(x)
        outputs = [(dtype, requested_shape(c, like), "")]
        return c.native("draw", [], outputs, attrs=(_BETA, *c.draw), params=numbers)[0]

    def reference(self, row: RowContext, *like: Any) -> Any:
        shape = requested_shape_reference(row, like)
        drawn = []
        for _ in range(int(np.prod(shape))):
            x, y = (_log_gamma_variate(row.stream, row.number(name)) for name in ("alpha", "beta"))
            drawn.append(0.5 if x == y else 1 / (1 + math.exp(min(y - x, 709.0))))
        return np.asarray(drawn, np.float64).astype(row["dtype"].numpy).reshape(shape)


def _log_gamma_variate(stream: Stream, shape: float) -> float:
    """Return the logarithm of a number from the gamma distribution."""
    if shape < 1:
        larger = _log_gamma_variate(stream, shape + 1)
        return larger + math.log(1 - stream.uniform()) / shape
    d = shape - 1 / 3
    c = 1 / math.sqrt(9 * d)
    while True:
        radius = math.sqrt(-2.0 * math.log(1.0 - stream.uniform()))
        x = radius * math.cos(math.tau * stream.uniform())
        u, v = 1 - stream.uniform(), (1 + c * x) ** 3
        if v > 0 and math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
            return math.log(d * v)
