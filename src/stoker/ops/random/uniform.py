# SPDX-License-Identifier: Apache-2.0
"""``random.uniform``."""

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
from ._drawn import UNIFORM, VALUES, drawn


class Uniform(Operator, name="random.uniform"):
    """Draw evenly from ``range``, or one of ``values``. Output: a scalar, ``shape`` or the input's shape, float32.

    A float32 or float64 never reaches the upper end of ``range``. Other types round half to even, as in DALI:
    ``range=[0, 3]`` with ``dtype=INT32`` gives 3 as well, and 0 and 3 half as often as 1 and 2. For integers use
    ``values`` or ``random.choice``.
    """

    inputs = (0, 1)
    draws = 1
    range = arg("float", (-1.0, 1.0), many=True, per_row=True, doc="From (inclusive) and to (exclusive).")
    values = arg("float", None, many=True, per_row=True, doc="The numbers to draw from, instead of `range`.")
    dtype = arg("dtype", None, doc="Element type of the output; FLOAT by default.")
    shape = arg("int", None, many=True, per_axis=True, per_row=True, doc="Shape of the output; a scalar if not given.")
    cases = ({}, {"range": (2.0, 5.0), "shape": (4,)}, {"values": (1.0, 2.0, 7.0), "dtype": "int32"})

    def lower(self, c: Lowering, *like: Value) -> Value:
        dtype = DType.FLOAT if c.const("dtype") is None else c.const("dtype")
        shape = requested_shape(c, like)
        if c.given("values"):
            c.expect(not c.scope_given("range"), "expected one of `range` and `values`, got both")
            given = c.pass_on("values")
            values = given if isinstance(given, Value) else c.constant(np.asarray(given, np.float64))
            c.require(math.prod(values.shape) > 0, "expected at least one element in `values`, got none")
            return drawn(c, VALUES, dtype, shape, inputs=[values])
        c.expect(c.length("range") in (2, None), "expected `range` with 2 elements, got {0}", c.length("range") or 0)
        low, high = c.scalar("range", 0), c.scalar("range", 1)
        fits = ex.both(ex.both(ex.isfinite(low), ex.isfinite(high)), low <= high)
        c.require(fits, "expected a finite `range` that does not go down, got {0} to {1}", low, high)
        return drawn(c, UNIFORM, dtype, shape, numbers=(low, high))

    def reference(self, row: RowContext, *like: Any) -> Any:
        dtype = DType.FLOAT if row["dtype"] is None else row["dtype"]
        shape = requested_shape_reference(row, like)
        count = int(np.prod(shape))
        if row["values"] is not None:
            values = np.asarray(row["values"], np.float64).reshape(-1)
            drawn = [values[int(row.stream.uniform() * len(values))] for _ in np.arange(count)]
            return cast_array(np.asarray(drawn, np.float64), dtype).reshape(shape)
        low, high = row.number("range", 0), row.number("range", 1)
        drawn = [low + (high - low) * row.stream.uniform() for _ in np.arange(count)]
        out = cast_array(np.asarray(drawn, np.float64), dtype)
        if dtype in (DType.FLOAT, DType.FLOAT64) and high > low:
            top = dtype.numpy.type(high)
            out = np.where(out.astype(np.float64) >= high, np.nextafter(top, dtype.numpy.type(low)), out)
        return out.reshape(shape)
