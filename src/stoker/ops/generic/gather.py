# SPDX-License-Identifier: Apache-2.0
"""``gather``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import GpuForm, Launches, Value
from ...contract.types import DType

_ELEMENTS = 2048  # of a block on a GPU (native/device/own_gather.cuh)


class Gather(Operator, name="gather"):
    """Select elements along an axis by their numbers, as ``numpy.take``: labels of kept boxes, entries of a table.

    Inputs: data of at least one axis, any type; whole numbers of any shape. Negative numbers count from the end.
    Output: the data's type; the axes of the numbers replace ``axis``. A number that is out of range is an error of the
    row. The CPU checks the numbers, also if the data are on a GPU. Exact.

    Numbers of kept boxes (``nms``, ``batched_nms``, ``nms_rotated``, ``soft_nms``) may be on a GPU. The data then have
    at least an element for each box. The output is as long as the numbers, which is known when the batch is done.
    """

    inputs = (2, 2)
    takes_bfloat16 = True
    axis = arg("int", 0, doc="Axis of the elements. Negative numbers count from the end.")
    cases = ({}, {"axis": 1}, {"axis": -1})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        data = [samples.noise(i, shape, "int16") for i, shape in enumerate(((5, 3, 4), (2, 3, 3), (9, 7, 3)))]
        places: tuple[list[int], ...] = ([0, 2, 1, 1, 0], [], [-1, 2])
        return samples.each(*((x, np.array(at, np.int32)) for x, at in zip(data, places, strict=True)))

    def lower(self, c: Lowering, x: Value, indices: Value) -> Value:
        c.expect(x.rank > 0, "expected data with at least one axis, got a single element")
        c.expect(not indices.dtype.is_float, f"expected whole numbers as indices, got {indices.dtype}")
        asked = c.const("axis")
        c.expect(-x.rank <= asked < x.rank, f"expected `axis` from {-x.rank} to {x.rank - 1}, got {asked}")
        axis, more = asked % x.rank, indices.rank
        c.expect(x.rank - 1 + more <= 8, f"expected an output of at most 8 axes, got {x.rank - 1 + more}")
        layout = x.layout if more == 1 else ""
        front = c.permute(x, [axis, *(i for i in range(x.rank) if i != axis)], "") if axis else x
        out = gathered(c, front, indices, argument="indices", from_end=True)
        if axis:
            order = [*range(more, more + axis), *range(more), *range(more + axis, out.rank)]
            return c.permute(out, order, layout)
        return c.relabel(out, layout) if out.layout != layout else out

    def reference(self, row: RowContext, x: Any, indices: Any) -> Any:
        return np.take(x, np.asarray(indices, np.int64), row["axis"])


def gathered(c: Lowering, x: Value, indices: Value, *, argument: str, from_end: bool = False) -> Value:
    """Return elements of the first axis of ``x`` by their numbers, which are checked.

    Args:
        c: the builder.
        x: the data.
        indices: the numbers.
        argument: name of the numbers in messages.
        from_end: negative numbers count from the end. Otherwise they are refused.
    """
    if indices.per_frame:
        indices = c.with_properties(indices, per_frame=False)
    below = c.numbers_below(indices)
    if below is None:
        numbers = c.native(
            "element_numbers", [indices], [(DType.INT64, indices.shape, "")], attrs=(argument.encode(), from_end),
            params=(x.shape[0],),
        )[0]  # fmt: skip
    else:  # a GPU may have the numbers, and even their count
        numbers = indices
        text = "expected data with at least {0} elements, one for each box, got {1}"
        c.require(x.shape[0] >= below, text, below, x.shape[0])
    blocks = ex.ceil(math.prod((*numbers.reserved, *x.shape[1:])) / _ELEMENTS)
    layout = x.layout if indices.rank == 1 else ""
    own = Launches("Gather", {"copy": blocks})
    return c.native(
        "gather", [x, numbers], [(x.dtype, (*numbers.shape, *x.shape[1:]), layout)], params=own.numbers(),
        gpu=GpuForm(own.kernel(), follows=1),
    )[0]  # fmt: skip
