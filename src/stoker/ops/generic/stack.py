# SPDX-License-Identifier: Apache-2.0
"""``stack``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.pixel import load
from ...contract.step import Value, ViewOp
from ...contract.types import DType
from ._arithmetic_reference import common_type
from ._join import MAX_INPUTS, MOST_INPUTS, channelled, in_numpy, joined_in_parts, joined_type, same_extents


class Stack(Operator, name="stack"):
    """Join tensors of one shape along a new axis. Output: the inputs' type, or the type that holds all of them.

    Any number of scalars, or up to eight tensors, are joined natively; more tensors in Python.
    """

    inputs = (1, 999)
    takes_bfloat16 = True
    axis = arg("int", 0, doc="The new axis.")
    axis_name = arg("str", None, doc="Name of the new axis; without it the output's axes have no names.")
    cases = ({}, {"axis": 1}, {"axis": -1})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.images(copies=2)

    def lower(self, c: Lowering, *inputs: Value) -> Value:
        same_extents(c, inputs)
        rank = inputs[0].rank
        axis = c.const("axis")
        c.expect(-rank - 1 <= axis <= rank, "expected an axis in [-{0}, {0}), got {1}", rank + 1, axis)
        axis %= rank + 1
        if len(inputs) > MOST_INPUTS and (rank or any(x.dtype in (DType.INT64, DType.UINT64) for x in inputs)):
            return joined_in_parts(c, inputs, self.name, axis, c.const("axis_name"))
        frames = any(x.per_frame for x in inputs)
        out = self._joined(c, inputs, axis, joined_type(inputs), frames)
        return c.with_properties(out, per_frame=True) if frames and axis > 0 else out

    def _joined(self, c: Lowering, inputs: Sequence[Value], axis: int, dtype: DType, frames: bool) -> Value:
        layout, rank = self._layout(c, inputs, axis), inputs[0].rank
        shape = list(inputs[0].shape)
        shape.insert(axis, len(inputs))
        if rank == 0 and all(x.dtype not in (DType.INT64, DType.UINT64) for x in inputs):
            out = c.numbers([c.element(x) for x in inputs], dtype)
            return c.relabel(out, layout) if layout else out
        if len(inputs) <= MAX_INPUTS:
            pre = [[ViewOp("insert", rank)]] * len(inputs)
            program = [load(x.dtype, i, 0).convert(dtype) for i, x in enumerate(inputs)]
            return channelled(c, inputs, pre, program, shape, axis, layout)
        return c.python([Spec(dtype, tuple(shape), layout)], in_numpy(c, inputs, dtype))[0]

    @staticmethod
    def _layout(c: Lowering, inputs: Sequence[Value], axis: int) -> str:
        name = c.const("axis_name")
        if name is None:
            return ""
        c.expect(len(name) == 1, f"expected one letter as `axis_name`, got {name!r}")
        layout = next((x.layout for x in inputs if x.layout), "")
        c.expect(bool(layout) or inputs[0].rank == 0, "expected inputs with named axes with `axis_name`")
        return f"{layout[:axis]}{name}{layout[axis:]}"

    def reference(self, row: RowContext, *inputs: Any) -> Any:
        dtype = common_type([np.asarray(x).dtype for x in inputs])
        return np.stack([np.asarray(x).astype(dtype) for x in inputs], row["axis"])
