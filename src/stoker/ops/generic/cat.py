# SPDX-License-Identifier: Apache-2.0
"""``cat``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import load
from ...contract.step import Launches, Value, ViewOp
from ...contract.types import DType
from ._arithmetic_reference import common_type
from ._join import (
    MAX_CHANNELS,
    MAX_INPUTS,
    MOST_INPUTS,
    axis_of,
    channelled,
    joined_in_parts,
    joined_type,
    same_extents,
)

_ELEMENTS = 16384  # of a block on a GPU (native/device/own_join.cuh)


class Cat(Operator, name="cat"):
    """Join tensors along an existing axis. Output: the inputs' type, or the type that holds all of them.

    Up to eight tensors with sixteen elements along the axis in total (channels, small vectors) join with the operators
    around them, if their extents along the axis are known when the pipeline is built. Others are copied, on the CPU.
    """

    inputs = (1, 999)
    takes_bfloat16 = True
    axis = arg("int", 0, doc="The axis to join along.")
    axis_name = arg("str", None, doc="The axis by name; wins over `axis`.")
    cases = ({}, {"axis": 1}, {"axis": -1})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.images(copies=2)

    def lower(self, c: Lowering, *inputs: Value) -> Value:
        first = inputs[0]
        c.expect(first.rank > 0, "expected tensors with an axis, got scalars. Use `stack` to join scalars")
        layout = next((x.layout for x in inputs if x.layout), "")
        name = c.const("axis_name")
        c.expect(name is None or name in layout, f"expected an axis {name!r} in layout {layout!r}")
        axis = axis_of(c, first.rank, layout)
        same_extents(c, inputs, but=axis)
        if len(inputs) == 1:
            return first
        if len(inputs) > MOST_INPUTS:
            return joined_in_parts(c, inputs, self.name, axis, None)
        frames = axis > 0 and any(x.per_frame for x in inputs)
        out = self._joined(c, inputs, axis, layout, joined_type(inputs))
        return c.with_properties(out, per_frame=True) if frames else out

    def _joined(self, c: Lowering, inputs: Sequence[Value], axis: int, layout: str, dtype: DType) -> Value:
        rank = inputs[0].rank
        shape = list(inputs[0].shape)
        shape[axis] = sum(x.shape[axis] for x in inputs)
        small = ex.is_static(shape[axis]) and 0 < shape[axis] <= MAX_CHANNELS
        if not small or len(inputs) > MAX_INPUTS:
            own = [c.cast(x, dtype) for x in inputs]
            blocks = (math.prod(shape) + _ELEMENTS - 1) // _ELEMENTS
            launches = Launches("Join", {"copy": blocks}, 0, (len(own), axis))
            return c.native("join", own, [(dtype, shape, layout)], attrs=(len(own), axis), own=launches)[0]
        order = (*(i for i in range(rank) if i != axis), axis)
        pre = [] if axis == rank - 1 else [ViewOp("permute", list=order)]
        counts = [int(n) for n in (x.shape[axis] for x in inputs) if ex.is_static(n)]
        program = [load(x.dtype, i, k).convert(dtype) for i, x in enumerate(inputs) for k in range(counts[i])]
        return channelled(c, inputs, [pre] * len(inputs), program, shape, axis, layout)

    def reference(self, row: RowContext, *inputs: Any) -> Any:
        name = row["axis_name"]
        axis = row["axis"] if name is None else next(x for x in row.layouts if x).index(name)
        dtype = common_type([x.dtype for x in inputs])
        return np.concatenate([x.astype(dtype) for x in inputs], axis)
