# SPDX-License-Identifier: Apache-2.0
"""``brightness``."""

from __future__ import annotations

from typing import Any

from ...contract.argument import arg
from ...contract.operator import COLOURS
from ._color import OutputDtype


class Brightness(OutputDtype, name="brightness"):
    """Change the brightness: ``brightness * x + brightness_shift * full``. Input: any shape. Output: the same.

    ``full`` is the output type's largest value, 1 for floats.
    """

    default_layouts = COLOURS
    brightness = arg("float", 1.0, per_row=True, doc="Factor of the brightness; 1: unchanged.")
    brightness_shift = arg(
        "float", 0.0, per_row=True, doc="Added, as a share of full intensity: 255 for uint8, 1 for floats."
    )
    cases = ({"brightness": 1.5}, {"brightness": 0.5, "brightness_shift": 0.25, "dtype": "float32"})

    def compose(self, c: Any, x: Any) -> Any:
        names = ("brightness", "brightness_shift", "dtype")
        return c.apply("brightness_contrast", x, **{name: c.pass_on(name) for name in names})
