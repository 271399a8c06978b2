# SPDX-License-Identifier: Apache-2.0
"""``laplacian``."""

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
from ._correlation import correlate_array
from ._windows import element_blocks
from .filter import filtered_type

_LARGEST = 31
_WINDOWS_BYTES = 4 * 32 * 4  # of the weights on a GPU (native/device/own_laplacian.cuh)
# Types that are filtered as float32, as in DALI.
_BY_FLOAT = (DType.UINT32, DType.INT32, DType.UINT64, DType.INT64, DType.FLOAT64)


class Laplacian(Operator, name="laplacian"):
    """Add the second derivatives of images along both axes. Input: HW, HWC, CHW or these with a leading F; numbers.
    Output: the same layout.

    Each derivative is a separable filter: Sobel's second derivative along its axis, and binomial smoothing along the
    other one. Edges are reflected (dcb|abcd|cba). Sums are in float32; for integers of 8 bits and windows of up to 9
    pixels they are exact, and equal OpenCV's ``Laplacian``. ``window_size=3, smoothing_size=1`` is OpenCV's
    ``ksize=1``. Integers of 32 and 64 bits and float64 are rounded to float32 first, as in DALI. `window_size`,
    `smoothing_size` and `scale` may be per frame.
    """

    gives_bfloat16 = takes_bfloat16 = True
    exactness = "exact for integers of 8 bits and windows of up to 9 pixels; otherwise within float32 rounding"
    window_size = arg(
        "int", (3,), many=True, per_row=True,
        doc="Size of the derivative's window, odd, 3 to 31: one, or (vertical, horizontal).",
    )  # fmt: skip
    smoothing_size = arg(
        "int", None, many=True, per_row=True,
        doc="Size of the smoothing window along an axis, odd, 1 to 31: one, or (vertical, horizontal). By default that "
        "of the derivative across it; 1: no smoothing.",
    )  # fmt: skip
    normalized_kernel = arg(
        "bool", False,
        doc="Scale each derivative by ``2^(-s + 4)``, where ``s`` is the sum of the sizes of its two windows. Not with "
        "`scale`.",
    )  # fmt: skip
    scale = arg(
        "float", (1.0,), many=True, per_row=True, doc="Factor of the derivatives: one, or (vertical, horizontal)."
    )
    dtype = arg("dtype", None, doc="Element type of the output: float32, or the input's.")
    cases = (
        {},
        {"window_size": 5, "dtype": "float32"},
        {"window_size": (3, 7), "smoothing_size": (5, 1), "scale": (0.5, 0.25)},
        {"window_size": 9, "normalized_kernel": True, "dtype": "float32"},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        given = x.dtype
        if given in _BY_FLOAT:
            dtype = given if c.const("dtype") is None else c.const("dtype")
            c.expect(dtype in (given, DType.FLOAT), f"expected {given} or float32 as `dtype`, got {dtype}")
            x, computed = c.cast(x, DType.FLOAT), DType.FLOAT
        else:
            x, dtype = filtered_type(c, x)
            computed = x.dtype if dtype == DType.BFLOAT16 else dtype
        normalized = c.const("normalized_kernel")
        c.expect(
            not normalized or not c.scope_given("scale"), "expected either `scale` or `normalized_kernel`, got both"
        )
        axes = image_axes(c, x)
        for axis in axes[1:3]:
            c.require(x.shape[axis] >= 1, "expected an image with pixels")
        numbers: list[Scalar] = []
        for i in (0, 1):
            size = self._size(c, "window_size", i, 3)
            # Across the vertical derivative lies the horizontal smoothing window, and vice versa.
            smooth = self._size(c, "smoothing_size", 1 - i, 1) if c.given("smoothing_size") else size
            scale = c.scalar("scale", i)
            if normalized:
                scale = ex.float32(ex.exp((4 - size - smooth) * math.log(2.0)))  # a power of two, exactly
            c.require(ex.isfinite(scale), "expected a finite `scale`, got {0}", scale)
            numbers += [size, smooth, scale]
        output = (computed, x.shape, x.layout)
        frames, inner = None, x.shape
        if any(c.differs_by_frame(n) for n in numbers):
            # The kernel sees one frame after the other.
            c.expect(axes[0] == 0, "expected a video (a leading F axis) for arguments per frame")
            frames, inner = x.shape[0], x.shape[1:]
            axes = (-1, axes[1] - 1, axes[2] - 1, max(axes[3] - 1, -1))
        blocks = element_blocks(inner)
        own = Launches(
            "Laplacian", {"weigh": 1, "across": blocks, "down": blocks}, _WINDOWS_BYTES + 8 * math.prod(inner)
        )
        out = c.native(
            "laplacian", [x], [output], attrs=axes, params=(*numbers, *axes), own=own, frames=frames,
            framed=[True] if frames is not None else (),
        )[0]  # fmt: skip
        return c.cast(out, dtype)

    @staticmethod
    def _size(c: Lowering, name: str, i: int, least: int) -> Scalar:
        size = c.scalar(name, i)
        c.require(
            ex.both(ex.both(size >= least, size <= _LARGEST), ex.equal(size % 2, 1)),
            f"expected an odd `{name}` of {least} to {_LARGEST}, got {{0}}", size,
        )  # fmt: skip
        return size

    def reference(self, row: RowContext, x: Any) -> Any:
        dtype = DType.of(x.dtype) if row["dtype"] is None else row["dtype"]
        x = cast_array(x, DType.FLOAT) if DType.of(x.dtype) in _BY_FLOAT else x
        sizes = [int(row.number("window_size", i)) for i in (0, 1)]
        smooth = (
            sizes[::-1] if row["smoothing_size"] is None else [int(row.number("smoothing_size", i)) for i in (0, 1)]
        )
        scales = [row.number("scale", i) for i in (0, 1)]
        if row["normalized_kernel"]:
            scales = [2.0 ** (4 - sizes[i] - smooth[1 - i]) for i in (0, 1)]

        def derived(frame: Any) -> Any:
            total = np.zeros(frame.shape, np.float32)
            for i in (0, 1):
                across = [
                    _taps(sizes[1], 2) if i else _taps(smooth[1], 0),
                    _taps(smooth[0], 0) if i else _taps(sizes[0], 2),
                ]
                wide, tall = across
                tall = (tall * scales[i]).astype(np.float32)
                middle = correlate_array(frame, wide[None], 0, len(wide) // 2, frame.shape[:2], "reflect_101")
                total += correlate_array(middle, tall[:, None], len(tall) // 2, 0, frame.shape[:2], "reflect_101")
            return cast_array(total, dtype)

        return each_frame(x, row.layout, derived)


def _taps(size: int, order: int) -> Any:
    """Return the window of a derivative of an order."""
    taps = np.array([1.0])
    for part in [[1.0, 1.0]] * (size - 1 - order) + [[1.0, -1.0]] * order:
        taps = np.convolve(taps, part)
    return taps.astype(np.float32)
