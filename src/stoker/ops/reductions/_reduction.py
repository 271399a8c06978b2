# SPDX-License-Identifier: Apache-2.0
"""Shared code of reductions: reduced axes, and the order of sums.

Sums of floats and of computed terms are in double, in one fixed order (:func:`summed`) that suits both GPU threads and
CPU vectors. They have the same bits everywhere, and a smaller error than sums from first to last. 16-bit floats are
converted exactly, and a 16-bit result is rounded once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Launches, Value
from ...contract.types import DType
from ..generic.cast import cast_array

_NUMBERS = ("min", "max", "sum", "mean", "mean_square", "rms", "variance", "std_dev")  # native/shared/reduce_fold.hpp
_LANES, _CHUNK = 32, 4096  # order of sums (native/shared/reduce_fold.hpp)
_TASKS = 8  # chunks per GPU block (native/device/own_reduce.cuh)


class Reduction(Operator, ABC):
    """Base class of reductions over some axes, or all of them."""

    version = 2  # version 1 summed from first to last
    takes_bfloat16 = True
    what: ClassVar[str]
    axes = arg(
        "int", None, many=True, per_axis=True, doc="Axes that are reduced, negative ones from the last; by default all."
    )
    axis_names = arg("str", None, doc="Names of the axes to reduce, such as HW, instead of `axes`.")
    keep_dims = arg("bool", False, doc="Keep these axes, with one element.")

    def result_type(self, c: Lowering, x: Value) -> DType:
        """Return the output's element type."""
        asked = c.const("dtype")
        return DType.FLOAT if asked is None else DType(asked)

    def lower(self, c: Lowering, x: Value, mean: Value | None = None) -> Value:
        gone = _axes(c.const("axes"), c.const("axis_names"), x.layout, x.rank, self.name)
        keep = c.const("keep_dims")
        shape = [1 if i in gone else n for i, n in enumerate(x.shape) if keep or i not in gone]
        layout = "".join(name for i, name in enumerate(x.layout) if keep or i not in gone)
        if mean is not None:
            _require_like(c, mean, [n for i, n in enumerate(x.shape) if i not in gone])
        ddof = c.const("ddof") if "ddof" in self.all_arguments() else 0
        attrs = (_NUMBERS.index(self.what), sum(1 << axis for axis in gone))
        return c.native(
            "reduce", [x] if mean is None else [x, mean], [(self.result_type(c, x), shape, layout)],
            attrs=attrs, params=(ddof,), own=_launches(x, gone, attrs),
        )[0]  # fmt: skip

    def reference(self, row: RowContext, x: Any, mean: Any = None) -> Any:
        gone = _axes(row["axes"], row["axis_names"], row.layout, x.ndim, self.name)
        stay = [i for i in range(x.ndim) if i not in gone]
        count = math.prod(x.shape[i] for i in gone)
        values = np.transpose(x, [*stay, *sorted(gone)]).reshape(*(x.shape[i] for i in stay), count)
        reduced = self.reduce(row, values, None if mean is None else np.asarray(mean, np.float64))
        return reduced.reshape([1 if i in gone else n for i, n in enumerate(x.shape)]) if row["keep_dims"] else reduced

    @abstractmethod
    def reduce(self, row: RowContext, values: Any, mean: Any) -> Any:
        """Reduce the last axis in NumPy."""


def extremes(dtype: Any) -> tuple[Any, Any]:
    """Return the smallest and the largest value of a type of NumPy's."""
    if dtype.kind == "b":
        return False, True
    if dtype.kind == "f":
        return dtype.type(-np.inf), dtype.type(np.inf)
    return np.iinfo(dtype).min, np.iinfo(dtype).max


class FloatReduction(Reduction):
    """Base class of reductions with a float result: a mean in double. The mean of an empty axis is NaN."""

    gives_bfloat16 = True
    dtype = arg("dtype", None, doc="Element type of the output; by default float32.")

    def reduce(self, row: RowContext, values: Any, mean: Any) -> Any:
        wide = values.astype(np.float64)
        return cast_array(self.finish(averaged(self.term(wide))), row["dtype"] or DType.FLOAT)

    def term(self, values: Any) -> Any:
        """Return the terms of the average."""
        return values

    def finish(self, mean: Any) -> Any:
        """Return the result for an average."""
        return mean


class Deviation(Reduction):
    """Base class of reductions of deviations from a given mean."""

    inputs = (2, 2)
    ddof = arg(
        "int", 0,
        doc="Delta degrees of freedom: the sum is divided by the number of elements minus `ddof`, or by 0 if that is "
        "negative; a division by 0 gives infinity, or NaN if the sum is 0.",
    )  # fmt: skip

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return [(x, np.float32(100.25 + i)) for i, (x,) in enumerate(samples.images())]

    def result_type(self, c: Lowering, x: Value) -> DType:
        return DType.FLOAT

    def reduce(self, row: RowContext, values: Any, mean: Any) -> Any:
        about = mean.reshape(()) if mean.size == 1 else mean.reshape(values.shape[:-1])[..., None]
        return self.finish(averaged((values.astype(np.float64) - about) ** 2, int(row["ddof"]))).astype(np.float32)

    def finish(self, variance: Any) -> Any:
        """Return the result for a variance."""
        return variance


def averaged(values: Any, ddof: int = 0) -> Any:
    """Return the sum over the last axis, divided by the count of elements minus ``ddof``, but not by less than zero.

    A division by zero gives infinity, or NaN if the sum is zero.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return summed(values) / float(max(values.shape[-1] - ddof, 0))


def summed(values: Any) -> Any:
    """Return the sum of doubles over the last axis, in the order of the native forms.

    In each chunk of 4096 numbers, number i is added to lane i % 32. Then the upper half of the lanes is added to the
    lower half until one lane is left. The chunks' sums are added in the same way, as one more chunk of any length.
    """
    chunks = in_lanes(_in_rows(values, _CHUNK))
    return in_lanes(chunks)


def _in_rows(values: Any, unit: int) -> Any:
    """Cut the last axis into at least one row of ``unit`` numbers. The last row is filled up with zeros."""
    rows = max(-(-values.shape[-1] // unit), 1)
    missing = np.zeros((*values.shape[:-1], rows * unit - values.shape[-1]))
    return np.concatenate([values, missing], -1).reshape(*values.shape[:-1], rows, unit)


def in_lanes(values: Any) -> Any:
    """Return the sum over the last axis: number i is added to lane i % 32, then the lanes' halves to each other."""
    lanes = np.add.accumulate(_in_rows(values, _LANES), -2)[..., -1, :] + 0.0  # adding 0.0 avoids a sum of -0
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes[..., 0]


def _launches(x: Value, gone: list[int], attrs: tuple[int, int]) -> Launches:
    """Return the form for GPUs: a warp per chunk of every output, then one warp per output with several chunks."""
    each = math.prod(x.shape[i] for i in gone)
    outputs = math.prod(n for i, n in enumerate(x.shape) if i not in gone)
    chunks = ex.maximum((each + _CHUNK - 1) // _CHUNK, 1)
    several = chunks > 1
    blocks = {
        "partial": (outputs * chunks + _TASKS - 1) // _TASKS,
        "finish": ex.where(several, (outputs + _TASKS - 1) // _TASKS, 0),
    }
    return Launches("Reduce", blocks, ex.where(several, outputs * chunks * 8, 0), (*attrs, x.rank))


def _axes(axes: Any, names: Any, layout: str, rank: int, operator: str) -> list[int]:
    """Return the axes to reduce."""
    if names is None:
        found = list(range(rank)) if axes is None else [int(a) for a in axes]
        if any(not -rank <= a < rank for a in found):
            raise ArgumentError(f"`{operator}`: expected axes in [-{rank}, {rank}), got {found}")
        return sorted({a % rank for a in found})
    if axes is not None:
        raise ArgumentError(f"`{operator}`: expected `axes` or `axis_names`, got both")
    layout = layout or {2: "HW", 3: "HWC", 4: "FHWC"}.get(rank, "")
    missing = [name for name in names if name not in layout]
    if missing:
        raise ArgumentError(f"`{operator}`: expected axes of the layout {layout!r}, got {missing[0]!r}")
    return sorted({layout.index(name) for name in names})


def _require_like(c: Lowering, mean: Value, shape: list[Any]) -> None:
    """Require that a mean is one number, or one per output element."""
    have, want = c.count(mean), ex.product(tuple(shape))
    if have == 1 or (have is not None and have == want):
        return
    number = ex.Expr("count", mean.id)
    wanted: Any = 1
    for n in shape:
        wanted = wanted * n
    c.require(
        ex.either(ex.equal(number, 1), ex.equal(number, wanted)),
        "expected a `mean` of {0} elements, got {1}",
        wanted,
        number,
    )
