# SPDX-License-Identifier: Apache-2.0
"""``_normalized_floats``: `normalize` of floats by their own statistics, in one kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.samples import Rows, each
from ...contract.step import Launches, Tiles, Value
from ...contract.types import DType

_CHUNK, _TASKS = 4096, 8  # numbers of a chunk, chunks of a GPU block (native/device/own_reduce.cuh)
_ELEMENTS = 2048  # of a GPU block (native/device/own_normalize.cuh)


class NormalizedFloats(Operator, name="_normalized_floats"):
    """Normalize float32 data to a mean and a standard deviation, along neighbouring axes. Output: the same shape.

    It has the bits of the mean in double, the variance, and `_normalized`. On the CPU the data stay in the cache, and
    the kernel can end a chain of audio kernels.
    """

    hidden = True
    exactness = "within float32 rounding"
    axes = arg("int", many=True, per_axis=True, doc="Neighbouring axes, in ascending order.")
    shift = arg("float", 0.0, doc="Added to the result.")
    scale = arg("float", 1.0, doc="Factor of the result.")
    ddof = arg("int", 0, doc="Subtracted from the number of elements.")
    epsilon = arg("float", 0.0, doc="Added to the variance.")
    cases = (
        {"axes": (0,)},
        {"axes": (1,), "scale": 3.0, "shift": -1.0},
        {"axes": (0, 1), "ddof": 1, "epsilon": 0.5},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        rng = np.random.default_rng(6)
        rows = [rng.normal(3, 2, shape).astype(np.float32) for shape in ((70, 21), (9, 50), (1, 1))]
        rows[1][:, 4] = 7  # without deviation
        return each(*rows)

    def lower(self, c: Lowering, x: Value) -> Value:
        gone = c.const("axes")
        c.expect(
            x.dtype == DType.FLOAT and tuple(gone) == tuple(range(gone[0], gone[0] + len(gone))) and gone[-1] < x.rank,
            "expected float32 data and neighbouring axes of them",
        )
        with np.errstate(over="ignore"):  # numbers beyond float32 are infinite
            scale, shift, epsilon = (float(np.float32(c.const(name))) for name in ("scale", "shift", "epsilon"))
        own = _launches(x, gone)
        tiles = Tiles("tiled", "columns", "") if x.rank == 2 else None
        return c.native(
            "normalize_floats", [x], [(DType.FLOAT, x.shape, x.layout)], attrs=(gone[0], len(gone)),
            params=(c.const("ddof"), scale, shift, epsilon), own=own, tiles=tiles,
        )[0]  # fmt: skip

    def reference(self, row: RowContext, x: Any) -> Any:
        f32, axes = np.float32, tuple(row["axes"])
        count, wide = math.prod(x.shape[axis] for axis in axes), x.astype(np.float64)
        mean = wide.sum(axes, keepdims=True) / max(count, 1)
        squares = ((wide - mean) ** 2).sum(axes, keepdims=True)
        variance = (squares / max(count - row["ddof"], 1)).astype(f32) + f32(row["epsilon"])
        with np.errstate(all="ignore"):
            factor = np.where(variance > 0, f32(row["scale"]) / np.sqrt(variance), f32(0))
        return (x - mean.astype(f32)) * factor + f32(row["shift"])


def _launches(x: Value, gone: Any) -> Launches:
    """Return the form for GPUs: two reductions, as `reductions.mean` has them, and a pass over the elements.

    One pass does it all for short columns along the last axes, whose neighbours a warp writes together.
    """
    each_ = math.prod(x.shape[i] for i in gone)
    columns = math.prod(n for i, n in enumerate(x.shape) if i not in gone)
    chunks = ex.maximum((each_ + _CHUNK - 1) // _CHUNK, 1)
    several = chunks > 1
    apart = several if gone[-1] == x.rank - 1 else True
    by_column = (columns + _TASKS - 1) // _TASKS
    first, second = ex.where(apart, (columns * chunks + _TASKS - 1) // _TASKS, 0), ex.where(several, by_column, 0)
    elements = ex.where(apart, (math.prod(x.shape) + _ELEMENTS - 1) // _ELEMENTS, 0)
    passes = {
        "whole": ex.where(apart, 0, by_column), "sums": first, "joined_sums": second, "squares": first,
        "joined_squares": second, "result": elements,
    }  # fmt: skip
    scratch = ex.where(apart, 16 * columns, 0) + ex.where(several, 8 * columns * chunks, 0)
    return Launches("Normalize", passes, scratch, (sum(1 << axis for axis in gone), x.rank))
