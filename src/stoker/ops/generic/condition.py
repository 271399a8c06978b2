# SPDX-License-Identifier: Apache-2.0
"""``_condition``: the condition of an ``if``, which must be one number per row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType


def require_single(c: Lowering, x: Value, what: str) -> None:
    """Require one element per row."""
    c.expect(not x.per_frame, f"expected {what}, got one per frame")
    known = ex.product(x.shape)
    count = ex.Expr("count", x.id) if known is None else known
    c.require(ex.equal(count, 1), f"expected {what}, got a tensor of {{0}} elements", count)


class Condition(Operator, name="_condition"):
    """Test whether a number is not 0. Input: one element, of any type. Output: a boolean scalar."""

    hidden = True
    takes_bfloat16 = True
    negate = arg("bool", False, doc="Test whether the number is 0 instead.")
    cases = ({}, {"negate": True})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.each(np.int32(0), np.int32(-3), np.float32(0.5).astype(np.int32))

    @classmethod
    def subject(cls, args: Mapping[str, Any]) -> str:
        return "not" if args.get("negate") else "if"

    def lower(self, c: Lowering, x: Value) -> Value:
        require_single(c, x, "a condition of one element")
        negate = c.const("negate")
        if x.dtype == DType.BOOL and x.rank == 0 and not negate:
            return x
        number = c.element(x)  # a 64-bit integer becomes the nearest double, which is 0 only for 0
        truth = ex.equal(number, 0) if negate else ex.different(number, 0)
        return c.numbers([truth], DType.BOOL, ())

    def reference(self, row: RowContext, x: Any) -> Any:
        return np.asarray(bool(np.asarray(x).reshape(())) != row["negate"])
