# SPDX-License-Identifier: Apache-2.0
"""``_displacements``: the random fields of `elastic`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType
from ..random._elements import ElementDraws, ElementDrawsReference
from ._map import height_and_width


class Displacements(Operator, name="_displacements"):
    """Draw two fields of numbers from -1 to 1, of an image's height and width. Outputs: float32, HW."""

    hidden = True
    takes_bfloat16 = True
    outputs = 2
    draws = 1
    cases = ({},)

    def lower(self, c: Lowering, x: Value) -> tuple[Value, ...]:
        size = height_and_width(c, x)
        draws = ElementDraws(c, size, 2)
        return c.stage([], [(DType.FLOAT, size, "HW")] * 2, [[draws.uniform(i) * 2.0 - 1.0] for i in (0, 1)])

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        draws = ElementDrawsReference(row, [x.shape[layout.index(name)] for name in "HW"], 2)
        return tuple(draws.uniform(i) * np.float32(2) - np.float32(1) for i in (0, 1))
