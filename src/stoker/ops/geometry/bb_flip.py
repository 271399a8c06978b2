# SPDX-License-Identifier: Apache-2.0
"""``bb_flip``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import Px, binary, load, select, uniform
from ...contract.step import Value, ViewOp
from ...contract.types import DType


class BbFlip(Operator, name="bb_flip"):
    """Mirror bounding boxes in an image whose sides are 1 long. Input: floats, four numbers for each box, for example
    (N, 4). Output: the same shape and type.

    Boxes are mirrored through their corners: ``1 - x1, 1 - x0``. With x, y, width and height (the default), ``x1`` is
    ``x + width`` and the new width is the difference of the new corners, so that a width of 0.3 may be 0.29999995.
    Numbers along an axis that is not mirrored keep their bits. Boxes outside the image are not refused. The number of
    elements must be a multiple of 4; DALI returns zeros for others.
    """

    takes_bfloat16 = True
    horizontal = arg("int", 1, per_row=True, doc="Mirror left and right where not 0.")
    vertical = arg("int", 0, per_row=True, doc="Mirror top and bottom where not 0.")
    ltrb = arg("bool", False, doc="Boxes are left, top, right, bottom instead of x, y, width, height.")
    cases = ({}, {"ltrb": True, "vertical": 1}, {"vertical": 1}, {"horizontal": 0})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.each(*(samples.noise(i, (n, 4), "float32") / 256 for i, n in enumerate((5, 0, 40))))

    def lower(self, c: Lowering, x: Value) -> Value:
        c.expect(x.dtype.is_float, f"expected boxes of a floating-point type, got {x.dtype}. Use `fn.cast` before")
        c.expect(x.rank > 0, "expected boxes of four numbers, got a single number")
        flags = c.scalar("horizontal"), c.scalar("vertical")
        whole = not any(map(c.differs_by_frame, flags))
        c.expect(whole, "expected arguments for the whole row, got one per frame")
        count: Scalar = 1
        for n in x.shape:
            count = count * n
        text = "expected boxes of four numbers, got {0} elements"
        c.require(ex.equal(count % 4, 0), text, count)
        if all(ex.is_static(f) and not f for f in flags):
            return x
        listed = ex.same(x.shape[-1], 4)
        boxes = x if listed else c.view(x, [ViewOp("reshape", list=(count // 4, 4))], may_copy=True)
        out = c.channelled(boxes, self._program(c, x.dtype, flags), boxes.rank - 1)
        return out if listed else c.view(out, [ViewOp("reshape", list=x.shape)], x.layout, may_copy=True)

    @staticmethod
    def _program(c: Lowering, dtype: DType, flags: tuple[Scalar, Scalar]) -> list[Px]:
        wide = DType.FLOAT if dtype.size <= 4 else DType.FLOAT64
        one = uniform(1, wide)
        program = [load(dtype, channel=k) for k in range(4)]
        for k, flag in enumerate(flags):
            low, far = (load(dtype, channel=i).cast(wide) for i in (k, k + 2))
            high = far if c.const("ltrb") else low + far
            new_low, new_high = one - high, one - low
            second = new_high if c.const("ltrb") else new_high - new_low
            for i, new in ((k, new_low), (k + 2, second)):
                if not ex.is_static(flag):
                    mirrored = binary("ne", uniform(ex.where(flag, 1, 0), DType.INT32), 0)
                    program[i] = select(mirrored, new.cast(dtype), program[i])
                elif flag:
                    program[i] = new.cast(dtype)
        return program

    def reference(self, row: RowContext, x: Any) -> Any:
        boxes = np.array(x).reshape(-1, 4)
        wide: Any = np.float32 if x.dtype.itemsize <= 4 else np.float64
        for name, k in (("horizontal", 0), ("vertical", 1)):
            if not row.number(name):
                continue
            low, far = boxes[:, k].astype(wide), boxes[:, k + 2].astype(wide)
            new_low, new_high = 1 - (far if row["ltrb"] else low + far), 1 - low
            boxes[:, k], boxes[:, k + 2] = new_low, new_high if row["ltrb"] else new_high - new_low
        return boxes.reshape(x.shape)
