# SPDX-License-Identifier: Apache-2.0
"""``hue``."""

from __future__ import annotations

from typing import Any

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import COLOURS, RowContext
from ...contract.step import Value
from ...contract.types import DType
from ._color import ColorOrder, OutputDtype, finite, hue_matrix, hue_matrix_reference, mixed, mixed_reference


class Hue(ColorOrder, OutputDtype, name="hue"):
    """Rotate the hue, linearly in YIQ. Input: 3 channels, HWC, CHW, FHWC or FCHW, any type. Output: the same."""

    default_layouts = COLOURS
    exactness = "within float32 rounding"
    hue = arg("float", 0.0, per_row=True, doc="Change of the hue in degrees.")
    cases = ({"hue": 45.0}, {"hue": -170.0, "dtype": "float32"})

    def lower(self, c: Lowering, x: Value) -> Value:
        (hue,) = finite(c, "hue")
        dtype = x.dtype if c.const("dtype") is None else c.const("dtype")
        return mixed(c, x, hue_matrix(hue, 1.0, 1.0, c.const("image_type")), 0.0, dtype)

    def reference(self, row: RowContext, x: Any) -> Any:
        dtype = DType.of(x.dtype) if row["dtype"] is None else row["dtype"]
        return mixed_reference(x, row.layout, hue_matrix_reference(row, 1.0), 0.0, dtype)
