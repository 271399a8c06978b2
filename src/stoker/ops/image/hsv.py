# SPDX-License-Identifier: Apache-2.0
"""``hsv``."""

from __future__ import annotations

from typing import Any

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import COLOURS, Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType, ImageType
from ._color import finite, hue_matrix, hue_matrix_reference, mixed, mixed_reference


class Hsv(Operator, name="hsv"):
    """Change hue, saturation and value (brightness) of RGB images. Input: 3 channels, HWC, CHW, FHWC or FCHW.

    The change is linear in YIQ, as in DALI, without a conversion to HSV. Output: the same layout, uint8 unless
    ``dtype`` is given.
    """

    default_layouts = COLOURS
    gives_bfloat16 = takes_bfloat16 = True
    exactness = "within float32 rounding"
    hue = arg("float", 0.0, per_row=True, doc="Change of the hue in degrees.")
    saturation = arg("float", 1.0, per_row=True, doc="Factor of the saturation; 0: without colour, 1: unchanged.")
    value = arg("float", 1.0, per_row=True, doc="Factor of the value (brightness); 1: unchanged.")
    dtype = arg("dtype", DType.UINT8, doc="Element type of the output.")
    cases = ({"hue": 45.0, "value": 1.2}, {"saturation": 0.5, "dtype": "float32"})

    def lower(self, c: Lowering, x: Value) -> Value:
        hue, saturation, value = finite(c, "hue", "saturation", "value")
        return mixed(c, x, hue_matrix(hue, saturation, value, ImageType.RGB), 0.0, c.const("dtype"))

    def reference(self, row: RowContext, x: Any) -> Any:
        matrix = hue_matrix_reference(row, row.number("value"))
        return mixed_reference(x, row.layout, matrix, 0.0, row["dtype"])
