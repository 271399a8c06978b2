# SPDX-License-Identifier: Apache-2.0
"""``_retyped``: the bytes of a tensor as elements of another type."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Launches, Value
from ...contract.types import DType

_ELEMENTS = 16384  # of a block on a GPU (native/device/own_retype.cuh)


class Retyped(Operator, name="_retyped"):
    """Take the bytes of the last axis as elements of another type. Input: any. Output: the same bytes."""

    hidden = True
    gives_bfloat16 = takes_bfloat16 = True
    dtype = arg("dtype", doc="Element type of the output.")
    cases = ({"dtype": "int8"}, {"dtype": "uint8"})

    def lower(self, c: Lowering, x: Value) -> Value:
        dtype = c.const("dtype")
        c.expect(
            dtype != DType.BOOL or x.dtype == dtype, "expected a type other than bool: bytes may be no truth values"
        )
        shape = list(x.shape)
        if dtype.size != x.dtype.size:
            c.expect(x.rank > 0, f"expected an axis whose bytes become {dtype}, got a single {x.dtype}")
            size = shape[-1] * x.dtype.size
            c.require(
                ex.equal(size % dtype.size, 0),
                f"expected a last axis whose bytes divide into {dtype}, got {{0}} bytes",
                size,
            )
            shape[-1] = size // dtype.size
        own = Launches("Retype", {"move": (math.prod(x.shape) + _ELEMENTS - 1) // _ELEMENTS})
        return c.native("retype", [x], [(dtype, shape, x.layout)], own=own)[0]

    def reference(self, row: RowContext, x: Any) -> Any:
        return np.ascontiguousarray(x).view(row["dtype"].numpy)
