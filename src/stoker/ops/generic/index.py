# SPDX-License-Identifier: Apache-2.0
"""``_index``: indexing and slicing of nodes, ``x[2]``, ``x[1:5:2, n]``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value, ViewOp


class Index(Operator, name="_index"):
    """Select elements and windows by Python's rules; moves no data.

    Inputs: the data, then every start, stop and index of ``spec`` that is given. Integers drop their axis and must be
    in range. Negative numbers count from the end. Slices are limited to the data.
    """

    inputs = (1, 24)
    takes_bfloat16 = True
    hidden = True
    spec = arg("str", doc='Per axis "i", or "<start><stop>:<step>" with "v" (a value) or "n" (none) for both.')
    cases = ({"spec": "nn:2"}, {"spec": "nn:1,nn:-1"}, {"spec": "nn:-3"})

    @classmethod
    def subject(cls, args: Mapping[str, Any]) -> str:
        return "[]"

    def lower(self, c: Lowering, x: Value, *values: Value) -> Value:
        for v in values:
            c.expect(not v.dtype.is_float, f"expected whole numbers as index, got {v.dtype}")
        specs = c.const("spec").split(",")
        c.expect(len(specs) <= x.rank, "expected at most {0} indices, got {1}", x.rank, len(specs))
        numbers = iter([_number(c, v) for v in values])
        ops, axis = [], 0  # axis of the result so far: integers drop their axis
        whole_frames = True
        for spec, n in zip(specs, x.shape, strict=False):
            if spec == "i":
                ops += [ViewOp("slice", axis, _element(c, next(numbers), n), 1, 1), ViewOp("drop", axis)]
                whole_frames &= axis > 0
                continue
            op = _window(axis, spec, numbers, n)
            if op is not None:
                ops.append(op)
            axis += 1
        if not ops:
            return x
        out = c.view(x, ops)
        return out if whole_frames or not x.per_frame else c.with_properties(out, per_frame=False)

    def reference(self, row: RowContext, x: Any, *values: Any) -> Any:
        numbers = iter([int(np.asarray(v).reshape(-1)[0]) for v in values])
        index: list[Any] = []
        for spec in row["spec"].split(","):
            if spec == "i":
                index.append(next(numbers))
                continue
            limits, step = spec.split(":")
            start, stop = (next(numbers) if kind == "v" else None for kind in limits)
            index.append(slice(start, stop, int(step)))
        return np.asarray(x[tuple(index)])


def _number(c: Lowering, v: Value) -> Any:
    known = ex.product(v.shape)
    if known != 1:
        count = ex.Expr("count", v.id) if known is None else known
        c.require(ex.equal(count, 1), "expected one number as index, got a tensor of {0} elements", count)
    return c.element(v)


def _element(c: Lowering, at: Any, n: Any) -> Any:
    c.require((at >= -n) & (at < n), "expected an index in [-{1}, {1}), got {0}", at, n)
    return ex.where(at < 0, at + n, at)


def _window(axis: int, spec: str, numbers: Iterator[Any], n: Any) -> ViewOp | None:
    """Apply Python's slice rule: limits outside the data move to its ends."""
    limits, text = spec.split(":")
    step = int(text)
    start, stop = (next(numbers) if kind == "v" else None for kind in limits)
    if start is None and stop is None and step == 1:
        return None
    if limits == "nn" and step == -1:
        return ViewOp("slice", axis, ex.maximum(n - 1, 0), -1, n, bijective=True)
    low, high = (0, n) if step > 0 else (-1, n - 1)

    def place(at: Any, default: Any) -> Any:
        return default if at is None else ex.clamp(ex.where(at < 0, at + n, at), low, high)

    start, stop = place(start, low if step > 0 else high), place(stop, high if step > 0 else low)
    extent = ex.maximum(ex.ceil((stop - start) / step) if step != 1 else stop - start, 0)
    return ViewOp("slice", axis, start, step, extent)
