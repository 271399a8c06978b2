# SPDX-License-Identifier: Apache-2.0
"""``gaussian_blur``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Launches, Value
from ...contract.types import DType
from ..generic.cast import cast_array
from ..geometry._axes import each_frame, image_axes
from ._correlation import correlate_array, tiles
from .filter import filtered_type

_LARGEST = 1 << 14
# Types that are blurred as float32, as in DALI.
_BY_FLOAT = (DType.UINT32, DType.INT32, DType.UINT64, DType.INT64, DType.FLOAT64)


class GaussianBlur(Operator, name="gaussian_blur"):
    """Blur images. Input: HW, HWC, CHW or these with a leading F; numbers. Output: the same layout.

    Rows, then columns, are filtered with a sampled Gaussian. Edges are reflected (dcb|abcd|cba). Sums are in float32.
    With ``sigma`` alone the window is ``2 ceil(3 sigma) + 1`` wide; with ``window_size`` alone sigma is ``0.3 (radius -
    1) + 0.8``. Integers of 32 and 64 bits and float64 are rounded to float32 first, as in DALI.
    """

    gives_bfloat16 = takes_bfloat16 = True
    exactness = "within float32 rounding"
    sigma = arg(
        "float",
        (0.0,),
        many=True,
        per_row=True,
        doc="Standard deviation of the Gaussian in pixels: one, or (vertical, horizontal); 0: from `window_size`.",
    )
    window_size = arg(
        "int",
        (0,),
        many=True,
        per_row=True,
        doc="Odd size of the window in pixels: one, or (vertical, horizontal); 0: from `sigma`.",
    )
    dtype = arg("dtype", None, doc="Element type of the output: float32, or the input's.")
    cases = ({"sigma": 1.3}, {"window_size": 5}, {"sigma": (0.5, 2.0), "window_size": (3, 7), "dtype": "float32"})

    def lower(self, c: Lowering, x: Value) -> Value:
        given = x.dtype
        if given in _BY_FLOAT:
            dtype = given if c.const("dtype") is None else c.const("dtype")
            c.expect(dtype in (given, DType.FLOAT), f"expected {given} or float32 as `dtype`, got {dtype}")
            x, computed = c.cast(x, DType.FLOAT), DType.FLOAT
        else:
            x, dtype = filtered_type(c, x)
            computed = x.dtype if dtype == DType.BFLOAT16 else dtype
        axes = image_axes(c, x)
        for axis in axes[1:3]:
            c.require(x.shape[axis] >= 1, "expected an image with pixels")
        params = [n for i in (0, 1) for n in self._bell(c, i)]
        blocks, scratch_bytes = tiles(x.shape, axes), (params[1] + params[3]) * (8 + 4)
        own = Launches(
            "Blur", {"weigh": 2, "across": blocks, "down": blocks}, scratch_bytes + 4 * math.prod(x.shape)
        )  # fmt: skip
        output = (computed, x.shape, x.layout)
        return c.cast(c.native("blur", [x], [output], attrs=axes, params=(*params, *axes), own=own)[0], dtype)

    def _bell(self, c: Lowering, i: int) -> tuple[Scalar, Scalar]:
        """Return (sigma, size) of an axis."""
        sigma, size = c.scalar("sigma", i), c.scalar("window_size", i)
        c.require(ex.both(ex.isfinite(sigma), sigma >= 0), "expected a `sigma` that is not negative, got {0}", sigma)
        c.require(
            ex.either(ex.equal(size, 0), ex.both(size > 0, ex.equal(size % 2, 1))),
            "expected an odd `window_size`, got {0}", size,
        )  # fmt: skip
        c.require(ex.either(sigma > 0, size > 0), "expected a `sigma` or a `window_size` above 0")
        wide = ex.where(size > 0, size, 2 * ex.ceil(3 * sigma) + 1)
        c.require(wide <= _LARGEST, "expected a window of at most {1} pixels, got {0}", wide, _LARGEST)
        return ex.where(sigma > 0, sigma, 0.3 * ((size - 1) / 2 - 1) + 0.8), wide

    def reference(self, row: RowContext, x: Any) -> Any:
        dtype = DType.of(x.dtype) if row["dtype"] is None else row["dtype"]
        x = cast_array(x, DType.FLOAT) if DType.of(x.dtype) in _BY_FLOAT else x
        bells = []
        for i in (0, 1):
            sigma, size = row.number("sigma", i), int(row.number("window_size", i))
            wide = size or 2 * math.ceil(3 * sigma) + 1
            sigma = sigma or 0.3 * ((size - 1) / 2 - 1) + 0.8
            bell = np.exp(-((np.arange(wide) - wide // 2) ** 2) / (2 * sigma * sigma))
            bells.append((bell / bell.sum()).astype(np.float32))

        def blurred(frame: Any) -> Any:
            down, across = bells
            middle = correlate_array(frame, across[None], 0, len(across) // 2, frame.shape[:2], "reflect_101")
            return cast_array(
                correlate_array(middle, down[:, None], len(down) // 2, 0, frame.shape[:2], "reflect_101"), dtype
            )

        return each_frame(x, row.layout, blurred)
