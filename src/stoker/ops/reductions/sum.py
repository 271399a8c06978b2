# SPDX-License-Identifier: Apache-2.0
"""``reductions.sum``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.step import Value
from ...contract.types import DType
from ..generic.cast import cast_array
from ._reduction import Reduction, summed


class Sum(Reduction, name="reductions.sum"):
    """Compute the sum along some axes. Input: any shape and type. Output: uint64, int64, float32 or ``dtype``.

    Integers are summed exactly, modulo 2**64. Floats are summed in double, in a fixed order (in 32 lanes). Sums of
    float64 are float64.
    """

    what = "sum"
    gives_bfloat16 = True
    dtype = arg(
        "dtype", None, doc="Element type of the output; by default 64 bits of the input's kind, float32 for floats."
    )
    cases = ({}, {"axis_names": "HW", "keep_dims": True}, {"axes": 0, "dtype": "float32"})

    def result_type(self, c: Lowering, x: Value) -> DType:
        asked = c.const("dtype")
        return _total(x.dtype) if asked is None else DType(asked)

    def reduce(self, row: RowContext, values: Any, mean: Any) -> Any:
        own = DType.of(values.dtype)
        asked = _total(own) if row["dtype"] is None else row["dtype"]
        if own.is_float:
            return cast_array(summed(values.astype(np.float64)), asked)
        return cast_array(values.sum(-1, dtype=_total(own).numpy), asked)


def _total(dtype: DType) -> DType:
    if dtype.is_float:
        return DType.FLOAT64 if dtype == DType.FLOAT64 else DType.FLOAT
    return DType.INT64 if dtype in (DType.INT8, DType.INT16, DType.INT32, DType.INT64) else DType.UINT64
