# SPDX-License-Identifier: Apache-2.0
"""``experimental.median_blur``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import IMAGES, Operator, RowContext
from ...contract.step import Launches, Value
from ..geometry._axes import image_axes
from ._windows import element_blocks, require_ordered, windowed

_LARGEST = 255


class MedianBlur(Operator, name="experimental.median_blur"):
    """Replace every pixel by the median of a rectangle around it. Input: HW, HWC, CHW or these with a leading F;
    numbers of up to 32 bits. Output: the same.

    Exact: the bytes of OpenCV's ``medianBlur``, also for types, sizes and rectangles that OpenCV lacks. Edges are
    repeated (aaa|abcd|ddd). Channels and frames are independent. NaNs count as numbers beyond the infinity of their
    sign. In DALI the operator runs on GPUs only.
    """

    default_layouts = IMAGES
    gives_bfloat16 = takes_bfloat16 = True
    window_size = arg(
        "int", (3, 3), many=True, per_axis=True, per_row=True,
        doc="Size of the window in pixels, (width, height): odd, 1 to 255.",
    )  # fmt: skip
    cases = ({}, {"window_size": 5}, {"window_size": (7, 3)}, {"window_size": (1, 5)}, {"window_size": 17})

    def lower(self, c: Lowering, x: Value) -> Value:
        require_ordered(c, x)
        axes = image_axes(c, x)
        for axis in axes[1:3]:
            c.require(x.shape[axis] >= 1, "expected an image with pixels")
        c.expect_one_or_each("window_size", 2)
        numbers = (self._side(c, 1), self._side(c, 0))
        return c.native(
            "median", [x], [(x.dtype, x.shape, x.layout)], attrs=axes, params=(*numbers, *axes),
            own=Launches("Median", {"select": element_blocks(x.shape)}),
        )[0]  # fmt: skip

    @staticmethod
    def _side(c: Lowering, i: int) -> Scalar:
        size = c.scalar("window_size", i)
        c.require(
            ex.both(ex.both(size >= 1, size <= _LARGEST), ex.equal(size % 2, 1)),
            "expected an odd `window_size` of 1 to {1}, got {0}", size, _LARGEST,
        )  # fmt: skip
        return size

    def reference(self, row: RowContext, x: Any) -> Any:
        sizes = [int(row.number("window_size", i)) for i in (1, 0)]
        if any(n < 1 or n % 2 == 0 for n in sizes):
            raise ValueError("expected an odd window")
        middle = sizes[0] * sizes[1] // 2
        return windowed(
            x, row.layout, [(n, n // 2) for n in sizes], "replicate",
            lambda w: np.partition(w, middle, -1)[..., middle], largest=True,
        )  # fmt: skip
