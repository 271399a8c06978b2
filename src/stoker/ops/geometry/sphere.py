# SPDX-License-Identifier: Apache-2.0
"""``sphere``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.pixel import unary, uniform
from ...contract.step import Value
from ._map import MaskedMapArguments, height_and_width, masked, masked_reference, pixel_places


class Sphere(MaskedMapArguments, name="sphere"):
    """Show an image as on a sphere. Input: images of up to 32 bits an element, HW, HWC, CHW or these with a leading F.
    Output: the same.

    With t the vector from the image's middle to the pixel's centre, in pixels, and d half of the longer side without
    its fraction, a pixel shows the source at ``middle + t * |t| / d``, in float32. Nearest neighbours have DALI's bits.
    """

    cases = (
        {}, {"interp_type": "INTERP_LINEAR", "fill_value": 99.0}, {"mask": 0},
        {"interp_type": "INTERP_CUBIC", "fill_value": 99.0},
    )  # fmt: skip

    def lower(self, c: Lowering, x: Value) -> Value:
        middles = [n / 2 for n in height_and_width(c, x)]
        largest = ex.maximum(ex.floor(ex.maximum(*middles)), 1)
        down, across = (p + uniform(0.5 - m) for p, m in zip(pixel_places(), middles, strict=True))
        radius = unary("sqrt", across * across + down * down) / uniform(largest)
        return masked(c, x, (uniform(middles[0]) + radius * down, uniform(middles[1]) + radius * across))

    def reference(self, row: RowContext, x: Any) -> Any:
        def places(y: Any, x: Any, height: int, width: int) -> Any:
            down, across = y + np.float32(0.5 - height / 2), x + np.float32(0.5 - width / 2)
            radius = np.sqrt(across * across + down * down) / np.float32(max(height // 2, width // 2, 1))
            return np.float32(height / 2) + radius * down, np.float32(width / 2) + radius * across

        return masked_reference(row, x, places)
