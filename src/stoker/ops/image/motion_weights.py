# SPDX-License-Identifier: Apache-2.0
"""``_motion_weights``: the window of `motion_blur`, before it is normalized."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import Px, binary, coordinate, unary, uniform
from ...contract.step import Value
from ...contract.types import DType

_LARGEST = 255


class MotionWeights(Operator, name="_motion_weights"):
    """Compute the weights of a line in a square window. The input determines nothing but the row. Output: float32."""

    hidden = True
    takes_bfloat16 = True
    exactness = "the same bits on every machine; the reference's sine and cosine may differ in the last place"
    size = arg("int", 9, per_row=True, doc="Side of the window.")
    angle = arg("float", 0.0, per_row=True, doc="Angle of the line in degrees.")
    direction = arg("float", 0.0, per_row=True, doc="Slope of the weights along the line.")
    cases = ({"size": 5, "angle": 20.0, "direction": 0.5},)

    def lower(self, c: Lowering, x: Value) -> Value:
        size, angle, direction = (c.scalar(name) for name in ("size", "angle", "direction"))
        c.require(
            ex.both(ex.both(size >= 1, size <= _LARGEST), ex.equal(size % 2, 1)),
            "expected an odd `size` of 1 to {1}, got {0}", size, _LARGEST,
        )  # fmt: skip
        c.require(ex.isfinite(angle), "expected a finite `angle`, got {0}", angle)
        c.require(ex.both(direction >= -1, direction <= 1), "expected a `direction` from -1 to 1, got {0}", direction)
        middle, turn = (size - 1) / 2, angle * (math.pi / 180)
        along, across = self._places(middle, ex.cos(turn), ex.sin(turn))
        near = binary("max", unary("abs", across) * -1.0 + 1.0, 0)
        within = binary("min", binary("max", uniform(middle + 1) - unary("abs", along), 0), 1)
        slope = along * uniform(direction / ex.maximum(middle, 1)) + 1.0
        return c.stage([], [(DType.FLOAT, (size, size), "")], [[near * within * slope]])[0]

    @staticmethod
    def _places(middle: Any, cosine: Any, sine: Any) -> tuple[Px, Px]:
        """Return a pixel's place along the line from its middle, and its distance from the line with a sign."""
        down, right = (coordinate(i).cast(DType.FLOAT) - uniform(middle) for i in (0, 1))
        return (
            right * uniform(cosine) - down * uniform(sine),
            right * uniform(sine) + down * uniform(cosine),
        )

    def reference(self, row: RowContext, x: Any) -> Any:
        size, direction = int(row.number("size")), np.float32(row.number("direction"))
        if size < 1 or size % 2 == 0:
            raise ValueError("expected an odd size")
        middle, turn = (size - 1) // 2, row.number("angle") * (math.pi / 180)
        offsets = np.arange(-middle, middle + 1, dtype=np.float32)
        cosine, sine = np.float32(math.cos(turn)), np.float32(math.sin(turn))
        along = offsets[None] * cosine - offsets[:, None] * sine
        across = offsets[None] * sine + offsets[:, None] * cosine
        covered = np.maximum(1 - abs(across), 0) * np.clip(np.float32(middle + 1) - abs(along), 0, 1)
        return covered * (along * np.float32(float(direction) / max(middle, 1)) + 1)
