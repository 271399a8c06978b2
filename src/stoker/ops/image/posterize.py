# SPDX-License-Identifier: Apache-2.0
"""``posterize``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import binary, load, uniform
from ...contract.step import Value
from ...contract.types import DType


class Posterize(Operator, name="posterize"):
    """Keep the highest bits of every element. Input: unsigned bytes of any shape. Output: the same shape.

    Equal to torchvision's ``posterize`` and Pillow's ``ImageOps.posterize``, bit for bit.
    """

    bits = arg("int", per_row=True, doc="Number of bits to keep, from 0 to 8.")
    cases = ({"bits": 3}, {"bits": 8}, {"bits": 0})

    def lower(self, c: Lowering, x: Value) -> Value:
        c.expect(x.dtype == DType.UINT8, f"expected uint8, got {x.dtype}; cast it first")
        bits = c.scalar("bits")
        c.require(ex.both(bits >= 0, bits <= 8), "expected `bits` from 0 to 8, got {0}", bits)
        lost = uniform(8 - ex.trunc(bits), DType.INT32)
        wide = load(x.dtype).cast(DType.INT32)
        return c.pointwise([x], binary("shl", binary("shr", wide, lost), lost).cast(x.dtype))

    def reference(self, row: RowContext, x: Any) -> Any:
        lost = 8 - int(row.number("bits"))
        if not 0 <= lost <= 8:
            raise ValueError("bits")
        return x & np.uint8(0xFF << lost & 0xFF)
