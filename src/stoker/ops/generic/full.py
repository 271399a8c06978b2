# SPDX-License-Identifier: Apache-2.0
"""``full``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import Px, load, uniform
from ...contract.step import Value
from ...contract.types import DType
from ._shape import requested_shape, requested_shape_reference


class Full(Operator, name="full"):
    """Fill a tensor. Input: the value, or a tensor that is broadcast. Output: ``shape``, the input's type."""

    takes_bfloat16 = True
    shape = arg("int", None, many=True, per_axis=True, per_row=True, doc="Shape of the output; by default the input's.")
    layout = arg("str", None, doc="Names of the output's axes.")
    cases = ({"shape": (2, 3)}, {"shape": ()})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.each(np.float32(2.5), np.float32(-1))

    def lower(self, c: Lowering, value: Value) -> Value:
        shape = requested_shape(c, ()) if c.given("shape") else value.shape
        c.expect(len(shape) >= value.rank, "expected a `shape` of at least {0} axes, got {1}", value.rank, len(shape))
        for have, want in zip(value.shape[::-1], shape[::-1], strict=False):
            if not ex.same(have, want):
                text = "expected a value that can be broadcast to `shape`, got {0} elements for {1}"
                c.require(ex.either(ex.equal(have, 1), ex.equal(have, want)), text, have, want)
        return filled(c, value, value.dtype, shape, c.const("layout") or "")

    def reference(self, row: RowContext, value: Any) -> Any:
        value = np.asarray(value)
        return np.broadcast_to(value, value.shape if row["shape"] is None else requested_shape_reference(row, ()))


def filled(c: Lowering, value: Value | float, dtype: DType, shape: Sequence[Any], layout: str) -> Value:
    """Return a tensor of ``dtype`` filled with ``value``."""
    inputs: list[Value] = []
    if not isinstance(value, Value):
        program: Px = uniform(value, dtype)
    elif value.rank == 0 and value.dtype not in (DType.INT64, DType.UINT64):
        program = uniform(c.element(value), value.dtype).cast(dtype)
    else:
        inputs = [value]
        program = load(value.dtype).cast(dtype)
    return c.stage(inputs, [(dtype, shape, layout)], [[program]])[0]
