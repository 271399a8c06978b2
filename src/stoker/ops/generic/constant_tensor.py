# SPDX-License-Identifier: Apache-2.0
"""``constant``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import SMALL, Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import load
from ...contract.step import Value
from ...contract.types import DType
from .cast import cast_array

_MOST_ELEMENTS = 1 << 28  # all rows share them, and a plan keeps them in memory


class ConstantTensor(Operator, name="constant"):
    """Return the same tensor for every row: ``fdata`` (float32 by default) or ``idata`` (int32 by default).

    One number fills ``shape``. Numbers are converted to ``dtype`` as `cast` does: integers are rounded half to even and
    saturate. DALI rounds halves away from zero.
    """

    gives_bfloat16 = True
    inputs = (0, 0)
    fdata = arg("float", None, many=True, doc="Elements, row by row.")
    idata = arg("int", None, many=True, doc="Elements, row by row, as integers.")
    shape = arg("int", None, many=True, per_axis=True, doc="Shape of the output; by default one axis.")
    dtype = arg("dtype", None, doc="Element type of the output.")
    layout = arg("str", "", doc="Names of the output's axes.")
    cases = (
        {"fdata": (1.5, 2.5, -300.0), "dtype": "int8"},
        {"idata": 7, "shape": (2, 3)},
        {"idata": (1, 2, 3, 4), "shape": (2, 2), "layout": "HW"},
    )

    def validate(self, args: Mapping[str, Any]) -> None:
        given = [name for name in ("fdata", "idata") if args[name] is not None]
        if len(given) != 1:
            got = "both" if given else "neither"
            raise ArgumentError(f"`constant`: expected one of `fdata` and `idata`, got {got}")
        count, shape = len(args[given[0]]), args["shape"]
        if shape is not None and min(shape, default=0) < 0:
            raise ArgumentError(f"`constant`: expected extents from 0 on as `shape`, got {shape}")
        if shape is not None and math.prod(shape) > _MOST_ELEMENTS:
            raise ArgumentError(f"`constant`: expected a `shape` of at most {_MOST_ELEMENTS} elements, got {shape}")
        if shape is not None and count not in (1, math.prod(shape)):
            raise ArgumentError(
                f"`constant`: expected one element, or the {math.prod(shape)} of `shape`, as `{given[0]}`, got {count}"
            )
        rank = 1 if shape is None else len(shape)
        if len(args["layout"]) not in (0, rank):
            raise ArgumentError(f"`constant`: expected a `layout` of {rank} names, got {args['layout']!r}")

    def lower(self, c: Lowering) -> Value:
        dtype, layout = self._type(c.scope.args), c.const("layout")
        array = self._array(c.scope.args, DType.FLOAT if dtype == DType.BFLOAT16 else dtype)  # which NumPy lacks
        if array.size > SMALL and not any(array.strides):  # one number, of which a plan keeps one copy
            x = c.pointwise([c.constant(array[(0,) * array.ndim])], load(DType.of(array.dtype)), array.shape, layout)
        else:
            x = c.constant(array, layout)
        return c.cast(x, dtype)

    @staticmethod
    def _type(args: Mapping[str, Any]) -> DType:
        default = DType.FLOAT if args["idata"] is None else DType.INT32
        return default if args["dtype"] is None else DType(args["dtype"])

    @staticmethod
    def _array(args: Mapping[str, Any], dtype: DType) -> Any:
        data = args["fdata"] if args["idata"] is None else args["idata"]
        wide = np.float64 if args["idata"] is None else np.uint64 if max(data, default=0) >= 1 << 63 else np.int64
        array = cast_array(np.array(data, wide), dtype)
        shape = array.shape if args["shape"] is None else args["shape"]
        return np.broadcast_to(array[0], shape) if len(data) == 1 else array.reshape(shape)

    def reference(self, row: RowContext) -> Any:
        dtype = self._type(row.args)
        if dtype == DType.BFLOAT16:
            return cast_array(self._array(row.args, DType.FLOAT), dtype)
        return self._array(row.args, dtype)
