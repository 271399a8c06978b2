# SPDX-License-Identifier: Apache-2.0
"""``brightness_contrast``."""

from __future__ import annotations

from typing import Any

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import COLOURS, RowContext
from ...contract.step import Value
from ...contract.types import DType
from ._color import OutputDtype, finite, half_range, scaled, scaled_reference


class BrightnessContrast(OutputDtype, name="brightness_contrast"):
    """Change brightness and contrast. Input: any shape and type. Output: the same shape.

    ``brightness * (contrast_center + contrast * (x - contrast_center)) + brightness_shift * full``, where ``full`` is
    the output type's largest value, 1 for floats. Sums are float32's, float64's for elements of 32 bits and more.
    """

    default_layouts = COLOURS
    brightness = arg("float", 1.0, per_row=True, doc="Factor of the brightness; 1: unchanged.")
    brightness_shift = arg(
        "float", 0.0, per_row=True, doc="Added, as a share of full intensity: 255 for uint8, 1 for floats."
    )
    contrast = arg("float", 1.0, per_row=True, doc="Factor of the contrast; 0: grey, 1: unchanged.")
    contrast_center = arg(
        "float", None, per_row=True, doc="Intensity that stays; by default 0.5 for floats, half the range for integers."
    )
    cases = (
        {"brightness": 1.5, "contrast": 0.7},
        {"brightness": 0.5, "brightness_shift": 0.25, "contrast_center": 10.0, "contrast": 2.0},
        {"contrast": 0.0, "dtype": "float32"},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        brightness, shift, contrast = finite(c, "brightness", "brightness_shift", "contrast")
        center = finite(c, "contrast_center")[0] if c.given("contrast_center") else half_range(x.dtype)
        dtype = x.dtype if c.const("dtype") is None else c.const("dtype")
        offset = shift * dtype.positive_range + brightness * (center - contrast * center)
        return scaled(c, x, brightness * contrast, offset, dtype)

    def reference(self, row: RowContext, x: Any) -> Any:
        own = DType.of(x.dtype)
        dtype = own if row["dtype"] is None else row["dtype"]
        brightness, contrast = row.number("brightness"), row.number("contrast")
        center = half_range(own) if row["contrast_center"] is None else row.number("contrast_center")
        offset = row.number("brightness_shift") * dtype.positive_range + brightness * (center - contrast * center)
        return scaled_reference(x, brightness * contrast, offset, dtype)
