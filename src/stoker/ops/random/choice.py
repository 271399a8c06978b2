# SPDX-License-Identifier: Apache-2.0
"""``random.choice``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value, ViewOp
from ...contract.types import DType
from ..generic._shape import requested_shape, requested_shape_reference


class Choice(Operator, name="random.choice"):
    """Draw elements along the first axis. Inputs: the elements, or a number n for 0 .. n - 1; optionally a tensor whose
    shape the draws take.

    Output: the elements' type. Without ``shape`` the output is one element, without moving data.
    """

    devices = ("cpu",)
    inputs = (1, 2)
    draws = 1
    p = arg(
        "float", None, many=True, per_row=True, doc="Weight of every element, at least 0; they need not add up to 1."
    )
    shape = arg("int", None, many=True, per_axis=True, per_row=True, doc="Shape of the draws; one draw if not given.")
    cases = ({}, {"shape": (5,)})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.each(np.int32(7), np.int32(1))

    def lower(self, c: Lowering, a: Value, *like: Value) -> Value:
        c.expect(a.rank > 0 or not a.dtype.is_float, f"expected a whole number or elements, got one {a.dtype}")
        weights = self._weights(c)
        if a.rank and not like and not c.given("shape"):
            at = self._draw(c, c.numbers([a.shape[0]], DType.INT64, ()), weights, (), DType.INT64)
            return c.view(a, [ViewOp("slice", 0, c.element(at), 1, 1), ViewOp("drop", 0)])
        return self._draw(c, a, weights, (*requested_shape(c, like), *a.shape[1:]), a.dtype)

    @staticmethod
    def _weights(c: Lowering) -> list[Value]:
        if not c.given("p"):
            return []
        given = c.pass_on("p")
        return [given if isinstance(given, Value) else c.constant(np.asarray(given, np.float64))]

    @staticmethod
    def _draw(c: Lowering, a: Value, weights: list[Value], shape: Sequence[Any], dtype: DType) -> Value:
        return c.native("choice", [a, *weights], [(dtype, shape, "")], attrs=(*c.draw, bool(weights)))[0]

    def reference(self, row: RowContext, a: Any, *like: Any) -> Any:
        a = np.asarray(a)
        elements = np.arange(int(a), dtype=a.dtype) if a.ndim == 0 else a
        shape = requested_shape_reference(row, like)
        picked = [self._pick(row, len(elements)) for _ in range(int(np.prod(shape)))]
        return elements[np.asarray(picked, np.int64)].reshape((*shape, *elements.shape[1:]))

    @staticmethod
    def _pick(row: RowContext, count: int) -> int:
        u = row.stream.uniform()
        if row["p"] is None:
            return min(count - 1, int(u * count))
        weights = np.asarray(row["p"], np.float64).reshape(-1)
        sums = np.cumsum(weights)
        inside = np.nonzero(u * sums[-1] < sums)[0]
        return int(inside[0] if len(inside) else np.nonzero(weights)[0][-1])
