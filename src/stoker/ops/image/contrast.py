# SPDX-License-Identifier: Apache-2.0
"""``contrast``."""

from __future__ import annotations

from typing import Any

from ...contract.argument import arg
from ...contract.operator import COLOURS
from ._color import OutputDtype


class Contrast(OutputDtype, name="contrast"):
    """Change the contrast. Input: any shape and type. Output: the same shape.

    ``contrast_center + contrast * (x - contrast_center)``.
    """

    default_layouts = COLOURS
    contrast = arg("float", 1.0, per_row=True, doc="Factor of the contrast; 0: grey, 1: unchanged.")
    contrast_center = arg(
        "float", None, per_row=True, doc="Intensity that stays; by default 0.5 for floats, half the range for integers."
    )
    cases = ({"contrast": 1.5}, {"contrast": 0.5, "contrast_center": 30.0, "dtype": "float32"})

    def compose(self, c: Any, x: Any) -> Any:
        names = ("contrast", "contrast_center", "dtype")
        return c.apply("brightness_contrast", x, **{name: c.pass_on(name) for name in names})
