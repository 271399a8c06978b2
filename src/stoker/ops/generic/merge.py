# SPDX-License-Identifier: Apache-2.0
"""``_merge``: the value of a variable after an ``if``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import ALIASES, Value
from ...contract.types import DType
from .cast import number_in


class Merge(Operator, name="_merge"):
    """Select the second input where the first one is true, else the third one; moves no data.

    Inputs: a boolean scalar, and two tensors of one type and number of axes. A constant is converted to the other
    input's type if that type holds it exactly.
    """

    inputs = (3, 3)
    takes_bfloat16 = True
    hidden = True
    variable = arg("str", "", doc="Name of the variable in the user's code.")
    cases = ({},)

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return [(np.asarray(i == 0), *row) for i, row in enumerate(samples.images(copies=2))]

    @classmethod
    def subject(cls, args: Mapping[str, Any]) -> str:
        return "if"

    def lower(self, c: Lowering, condition: Value, a: Value, b: Value) -> Value:
        a, b = _adapted(c, a, b.dtype), _adapted(c, b, a.dtype)
        name = c.const("variable")
        what = f"`{name}` to have one type and number of axes" if name else "one type and number of axes"
        if a.dtype != b.dtype or a.rank != b.rank:
            kinds = " and ".join(f"{x.dtype} with {x.rank} axes" for x in (a, b))
            hint = "Use `fn.cast` or `fn.reshape` in one of them"
            c.expect(False, f"expected {what} in both branches, got {kinds}. {hint}")
        if a.layout and b.layout and a.layout != b.layout:
            layouts = f"{a.layout} and {b.layout}"
            c.expect(False, f"expected one layout in both branches, got {layouts}. Use `fn.reshape` in one of them")
        c.expect(a.per_frame == b.per_frame, "expected values per frame in both branches or in none")
        known = [x if ex.same(x, y) else None for x, y in zip(a.shape, b.shape, strict=True)]
        out = c.opaque(a.dtype, a.rank, a.layout or b.layout, known)
        c.emit("select", [condition, a, b], [out], memory=ALIASES)
        return c.with_properties(out, per_frame=True) if a.per_frame else out

    def reference(self, row: RowContext, condition: Any, a: Any, b: Any) -> Any:
        return a if condition else b


def _adapted(c: Lowering, x: Value, dtype: DType) -> Value:
    """Convert a constant to another type, if that type holds it exactly."""
    if x.dtype == dtype or x.rank:
        return x
    number = c.element(x)
    if not ex.is_static(number):
        return x
    if dtype == DType.BFLOAT16:
        return c.numbers([number], dtype, ()) if number_in(number, dtype) == number else x
    with np.errstate(over="ignore"):
        try:
            array = np.asarray(number, dtype.numpy)
        except OverflowError:
            return x
    return c.constant(array) if array == number and (dtype != DType.BOOL or x.dtype == DType.BOOL) else x
