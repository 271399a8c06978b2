# SPDX-License-Identifier: Apache-2.0
"""``_padded``: `pad` with known extents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Launches, Value
from ...contract.types import DType
from ..generic.cast import cast_array

_BOTH = "`pad`: expected `axes` or `axis_names`, got both"
_ELEMENTS = 16384  # of a block on a GPU (native/device/own_pad.cuh)


class PadArguments(Operator):
    """Arguments of a padding."""

    takes_bfloat16 = True
    fill_value = arg("float", 0.0, per_row=True, doc="Value of the new elements.")
    axes = arg(
        "int",
        None,
        many=True,
        per_axis=True,
        per_row=True,
        doc="Axes that are padded, negative ones from the last; by default all.",
    )
    axis_names = arg("str", None, doc="The same by names.")
    align = arg(
        "int",
        None,
        many=True,
        per_axis=True,
        per_row=True,
        doc="Extents are rounded up to multiples: one, or one per axis.",
    )
    shape = arg(
        "int", None, many=True, per_axis=True, per_row=True,
        doc="Smallest extents, one per axis; -1: the largest one of the batch. By default -1 for all axes.",
    )  # fmt: skip


class Padded(PadArguments, name="_padded"):
    """Pad a tensor at the ends of its axes. Inputs: the tensor, and optionally the smallest extents of all axes.
    Output: the same type and layout.
    """

    hidden = True
    inputs = (1, 2)
    cases = ({"shape": (15, 30), "axes": (0, 1), "fill_value": 300.0}, {"align": (8,), "axes": (-1,)})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.images()

    def lower(self, c: Lowering, x: Value, least: Value | None = None) -> Value:
        drawn = "axes" in c.scope.edges
        if drawn and c.given("axis_names"):
            raise ArgumentError(_BOTH)
        fixed = [] if drawn else padded_axes(c.const("axes"), c.const("axis_names"), c.layout(x), x.rank)
        axes: Sequence[Scalar] = self._drawn_axes(c, x) if drawn else fixed
        fill = c.scalar("fill_value")
        shape = list(x.shape)
        for i, axis in enumerate(axes):
            # All axes are candidates for one that a row names.
            for k in range(x.rank) if drawn else fixed[i : i + 1]:
                largest = None if least is None else c.element(least, k)
                extent = self._extent(c, x.shape[k], i, len(axes), largest)
                shape[k] = ex.where(ex.equal(axis, k), extent, shape[k]) if drawn else extent
        blocks = (math.prod(shape) + _ELEMENTS - 1) // _ELEMENTS
        own = Launches("Pad", {"fill": blocks})
        return c.native("pad", [x], [(x.dtype, shape, x.layout)], params=(fill,), own=own)[0]

    @staticmethod
    def _drawn_axes(c: Lowering, x: Value) -> list[Scalar]:
        """Return the axes that a row names, from 0; they are required to differ."""
        number = c.fixed_length("axes")
        if number > x.rank:  # before each is compared with each
            raise ArgumentError(f"`pad`: expected different axes of a tensor with {x.rank}, got {number} axes")
        axes: list[Scalar] = []
        for i in range(number):
            axis = c.scalar("axes", i)
            c.require(
                ex.both(axis >= -x.rank, axis < x.rank), "expected axes in [{0}, {1}), got {2}", -x.rank, x.rank, axis
            )
            axis = ex.where(axis < 0, axis + x.rank, axis)
            for other in axes:
                c.require(ex.different(axis, other), "expected each axis once, got {0} twice", axis)
            axes.append(axis)
        return axes

    @staticmethod
    def _extent(c: Lowering, own: Scalar, i: int, count: int, largest: Scalar | None) -> Scalar:
        extent = own
        if c.given("shape"):
            c.expect(
                c.fixed_length("shape") in (1, count),
                "expected one extent as `shape`, or one for each of {0} axes, got {1}", count, c.fixed_length("shape"),
            )  # fmt: skip
            asked = c.scalar("shape", i)
            c.require(ex.both(asked >= -1, asked < 1 << 40), "expected extents of at least -1, got {0}", asked)
            extent = ex.maximum(extent, asked)
            if largest is not None:
                extent = ex.where(asked < 0, ex.maximum(extent, largest), extent)
        elif largest is not None:
            extent = ex.maximum(extent, largest)
        if c.given("align"):
            c.expect(
                c.fixed_length("align") in (1, count),
                "expected one number as `align`, or one for each of {0} axes, got {1}", count, c.fixed_length("align"),
            )  # fmt: skip
            step = c.scalar("align", i)
            c.require(ex.both(step >= 1, step < 1 << 40), "expected an `align` of at least 1, got {0}", step)
            extent = ex.ceil(extent / step) * step
        return extent

    def reference(self, row: RowContext, x: Any, least: Any = None) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}.get(x.ndim, "")
        given = None if row["axes"] is None else [int(a) for a in np.asarray(row["axes"]).reshape(-1)]
        axes = padded_axes(given, row["axis_names"], layout, x.ndim)
        shape = list(x.shape)
        for i, axis in enumerate(axes):
            asked = -1 if row["shape"] is None else int(row.number("shape", i))
            largest = 0 if least is None else int(least[axis])
            shape[axis] = max(shape[axis], largest if asked < 0 else asked)
            if row["align"] is not None:
                step = int(row.number("align", i))
                shape[axis] = -(-shape[axis] // step) * step
        out = np.empty(shape, x.dtype)
        out[...] = cast_array(np.float64(row.number("fill_value")), DType.of(x.dtype))
        out[tuple(slice(n) for n in x.shape)] = x
        return out


def padded_axes(axes: Sequence[int] | None, names: str | None, layout: str, rank: int) -> list[int]:
    """Return the axes to pad."""
    if axes is not None and names is not None:
        raise ArgumentError(_BOTH)
    if names is not None:
        missing = next((name for name in names if name not in layout), None)
        if missing is not None:
            raise ArgumentError(f"`pad`: expected axes of the layout {layout!r}, got {missing!r}")
        axes = [layout.index(name) for name in names]
    found = list(range(rank)) if axes is None else list(axes)
    wrong = next((a for a in found if not -rank <= a < rank), None)
    if wrong is not None:
        raise ArgumentError(f"`pad`: expected axes in [-{rank}, {rank}), got {wrong}")
    found = [a % rank for a in found]
    if len(set(found)) != len(found):
        raise ArgumentError(f"`pad`: expected each axis once, got {axes}")
    return found
