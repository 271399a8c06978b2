# SPDX-License-Identifier: Apache-2.0
"""``color_twist``."""

from __future__ import annotations

from typing import Any

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import COLOURS, RowContext
from ...contract.step import Value
from ...contract.types import DType
from ._color import (
    ColorOrder,
    OutputDtype,
    channel_axis,
    finite,
    hue_matrix,
    hue_matrix_reference,
    mixed,
    mixed_reference,
    scaled,
)


class ColorTwist(ColorOrder, OutputDtype, name="color_twist"):
    """Change brightness, contrast, saturation and hue. Input: 3 channels, HWC, CHW, FHWC or FCHW. Output: the same.

    ``brightness * (contrast * M x + (1 - contrast) * C)`` with M the linear change of hue and saturation in YIQ, and C
    128 for integers, 0.5 for floats: DALI's order and matrices. torchvision's ColorJitter differs: its hue is HSV's and
    its contrast is about the image's own mean. Sums are float32's, float64's for elements of 32 bits and more.
    """

    default_layouts = COLOURS
    exactness = "within float32 rounding"
    brightness = arg("float", 1.0, per_row=True, doc="Factor of the brightness; 1: unchanged.")
    contrast = arg("float", 1.0, per_row=True, doc="Factor of the contrast; 0: grey, 1: unchanged.")
    saturation = arg("float", 1.0, per_row=True, doc="Factor of the saturation; 0: without colour, 1: unchanged.")
    hue = arg("float", 0.0, per_row=True, doc="Change of the hue in degrees.")
    cases = (
        {},
        {"brightness": 1.4, "contrast": 0.6},
        {"hue": 35.0, "saturation": 1.7},
        {"brightness": 0.8, "contrast": 1.2, "saturation": 0.5, "hue": -80.0, "image_type": "BGR"},
        {"saturation": 0.0, "dtype": "float32"},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        brightness, contrast, saturation, hue = finite(c, "brightness", "contrast", "saturation", "hue")
        center = 0.5 if x.dtype.is_float else 128.0
        factor, offset = brightness * contrast, (center - contrast * center) * brightness
        dtype = x.dtype if c.const("dtype") is None else c.const("dtype")
        if ex.same(hue, 0) and ex.same(saturation, 1) and not x.dtype.is_float and not dtype.is_float:
            # Products with 0 add nothing to integers. Without them, a channel can become a table.
            _, count = channel_axis(c, x)
            if count == 3:
                return scaled(c, x, factor, offset, dtype)
        return mixed(c, x, hue_matrix(hue, saturation, factor, c.const("image_type")), offset, dtype)

    def reference(self, row: RowContext, x: Any) -> Any:
        own = DType.of(x.dtype)
        brightness, contrast = row.number("brightness"), row.number("contrast")
        center = 0.5 if own.is_float else 128.0
        offset = (center - contrast * center) * brightness
        matrix = hue_matrix_reference(row, brightness * contrast)
        return mixed_reference(x, row.layout, matrix, offset, own if row["dtype"] is None else row["dtype"])
