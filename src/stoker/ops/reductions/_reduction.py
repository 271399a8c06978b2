# SPDX-License-Identifier: Apache-2.0
"""What reductions share: which axes go, and the order of sums.

Sums of floats, and of what is computed from numbers, are double's in one fixed order (:func:`summed`), which threads of
a GPU and vectors of a CPU can both keep: the same bits everywhere, and a smaller error than from first to last. Floats
of 16 bits are taken as the numbers that they are, and a result of 16 bits is rounded once.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Launches, Value
from ...contract.types import DType
from ..generic.cast import cast_array

_NUMBERS = ("min", "max", "sum", "mean", "mean_square", "rms", "variance", "std_dev")  # native/reduce_fold.hpp
_LANES, _CHUNK = 32, 4096  # of a sum's order (native/reduce_fold.hpp)
_TASKS = 8  # chunks that a block of a GPU takes (native/cuda/own_reduce.cuh)


class Reduction(Operator, ABC):
    """Over some axes, or all of them."""

    kind = "reduce"
    version = 2  # sums were taken from first to last before
    takes_bfloat16 = True
    what: ClassVar[str]
    axes = arg("int", None, many=True, doc="Axes that are reduced, negative ones from the last; by default all.")
    axis_names = arg("str", None, doc="Their names instead, such as HW.")
    keep_dims = arg("bool", False, doc="Keep these axes, with one element.")

    def result_type(self, c: Lowering, x: Value) -> DType:
        """The output's element type."""
        asked = c.const("dtype")
        return DType.FLOAT if asked is None else DType(asked)

    def lower(self, c: Lowering, x: Value, mean: Value | None = None) -> Value:
        gone = _axes(c.const("axes"), c.const("axis_names"), x.layout, x.rank, self.name)
        keep = c.const("keep_dims")
        if self.what in ("min", "max"):
            for axis in gone:
                c.require(x.shape[axis] > 0, "expected at least one element, got an empty axis")
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
        made = self.reduce(row, values, None if mean is None else np.asarray(mean, np.float64))
        return made.reshape([1 if i in gone else n for i, n in enumerate(x.shape)]) if row["keep_dims"] else made

    @abstractmethod
    def reduce(self, row: RowContext, values: Any, mean: Any) -> Any:
        """The last axis, reduced in NumPy."""


class FloatReduction(Reduction):
    """One whose result is a float: a mean in double."""

    gives_bfloat16 = True
    dtype = arg("dtype", None, doc="Element type of the output; by default float32.")

    def reduce(self, row: RowContext, values: Any, mean: Any) -> Any:
        wide = values.astype(np.float64)
        return cast_array(self.finish(averaged(self.term(wide))), row["dtype"] or DType.FLOAT)

    def term(self, values: Any) -> Any:
        """What is averaged."""
        return values

    def finish(self, mean: Any) -> Any:
        """What becomes of the average."""
        return mean


class Deviation(Reduction):
    """From a mean that is given."""

    inputs = (2, 2)
    ddof = arg("int", 0, doc="Taken off the number of elements that the sum is divided by.")

    def result_type(self, c: Lowering, x: Value) -> DType:
        return DType.FLOAT

    def reduce(self, row: RowContext, values: Any, mean: Any) -> Any:
        about = mean.reshape(()) if mean.size == 1 else mean.reshape(values.shape[:-1])[..., None]
        return self.finish(averaged((values.astype(np.float64) - about) ** 2, int(row["ddof"]))).astype(np.float32)

    def finish(self, variance: Any) -> Any:
        """What becomes of the variance."""
        return variance


def averaged(values: Any, ddof: int = 0) -> Any:
    """The mean over the last axis."""
    count, total = values.shape[-1] - ddof, summed(values)
    return total / count if count > 0 else np.zeros_like(total)


def summed(values: Any) -> Any:
    """The sum of doubles over the last axis, in the order that the native forms keep.

    Of each chunk of 4096 numbers, number i is added to lane i % 32, and then the upper half of the lanes to the lower
    one until one is left. The chunks' sums are added up as if they were one more chunk, of any length.
    """
    chunks = _in_lanes(_in_rows(values, _CHUNK))
    return _in_lanes(chunks)


def _in_rows(values: Any, unit: int) -> Any:
    """The last axis cut into at least one row of ``unit``; the last one is filled up with zeros."""
    rows = max(-(-values.shape[-1] // unit), 1)
    missing = np.zeros((*values.shape[:-1], rows * unit - values.shape[-1]))
    return np.concatenate([values, missing], -1).reshape(*values.shape[:-1], rows, unit)


def _in_lanes(values: Any) -> Any:
    lanes = np.add.accumulate(_in_rows(values, _LANES), -2)[..., -1, :] + 0.0  # no sum is -0
    while lanes.shape[-1] > 1:
        half = lanes.shape[-1] // 2
        lanes = lanes[..., :half] + lanes[..., half:]
    return lanes[..., 0]


def _launches(x: Value, gone: list[int], attrs: tuple[int, int]) -> Launches:
    """The form for GPUs: a warp per chunk of every output, then one per output of several chunks."""
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
    """The axes that are reduced."""
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
    return sorted(layout.index(name) for name in names)


def _require_like(c: Lowering, mean: Value, shape: list[Any]) -> None:
    """A mean is one number, or one for every output."""
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
