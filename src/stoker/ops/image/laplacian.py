# SPDX-License-Identifier: Apache-2.0
"""``laplacian``."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import coordinate, load, lookup, uniform
from ...contract.step import Launches, Value, ViewOp
from ...contract.types import DType
from ..generic.cast import cast_array
from ..geometry._axes import each_frame, image_axes
from ..geometry._volume import along_depth, each_slice, restored, spatial_axes, unfolded, volume_array
from ._correlation import correlate_array
from ._windows import element_blocks
from .filter import filtered_by, filtered_type

_LARGEST = 31
_SIZES = range(1, _LARGEST + 1, 2)
_WINDOWS_BYTES = 4 * 32 * 4  # of the weights on a GPU (native/device/own_laplacian.cuh)
# Types that are filtered as float32, as in DALI.
_BY_FLOAT = (DType.UINT32, DType.INT32, DType.UINT64, DType.INT64, DType.FLOAT64)


class Laplacian(Operator, name="laplacian"):
    """Add the second derivatives of images and volumes along all axes but F and C. Input: HW, HWC, CHW or these with a
    leading F, or an axis D before H, or one axis; numbers. Output: the same layout.

    Each derivative is a separable filter: Sobel's second derivative along its axis, and binomial smoothing along the
    others. Edges are reflected (dcb|abcd|cba). Sums are in float32; for integers of 8 bits and windows of up to 9
    pixels they are exact, and equal OpenCV's ``Laplacian``. ``window_size=3, smoothing_size=1`` is OpenCV's
    ``ksize=1``. Integers of 32 and 64 bits and float64 are rounded to float32 first, as in DALI. `window_size`,
    `smoothing_size` and `scale` may be per frame for images.
    """

    gives_bfloat16 = takes_bfloat16 = True
    exactness = "exact for integers of 8 bits and windows of up to 9 pixels; otherwise within float32 rounding"
    window_size = arg(
        "int", (3,), many=True, per_axis=True, per_row=True,
        doc="Size of the derivative's window, odd, 3 to 31: one, or (vertical, horizontal), "
        "of volumes (depth, vertical, horizontal).",
    )  # fmt: skip
    smoothing_size = arg(
        "int", None, many=True, per_axis=True, per_row=True,
        doc="Size of the smoothing window along an axis, odd, 1 to 31: one, or one per axis as `window_size`. By "
        "default that of the derivative across it; 1: no smoothing.",
    )  # fmt: skip
    normalized_kernel = arg(
        "bool", False,
        doc="Scale each derivative by ``2^(-s + n + 2)``, where ``s`` is the sum of the sizes of its ``n`` windows, "
        "one per axis. Not with `scale`.",
    )  # fmt: skip
    scale = arg(
        "float",
        (1.0,),
        many=True,
        per_axis=True,
        per_row=True,
        doc="Factor of the derivatives: one, or one per axis.",
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
        for name in ("window_size", "smoothing_size", "scale"):
            if c.given(name):
                c.expect_one_or_each(name, 1 if x.rank == 1 else 3 if "D" in c.layout(x) else 2)
        if x.rank == 1 or "D" in c.layout(x):
            return c.cast(self._of_volume(c, x, computed), dtype)
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

    def _of_volume(self, c: Lowering, x: Value, dtype: DType) -> Value:
        """Return the sum of the derivatives of a volume, or of the one axis."""
        line = x.rank == 1
        whole = c.view(x, [ViewOp("insert", 0), ViewOp("insert", 0), ViewOp("insert", 3)], "DHWC") if line else x
        if not line:
            spatial_axes(c, x)
            whole = unfolded(c, x)
        for axis in range(whole.rank - 4, whole.rank - 1):
            c.require(whole.shape[axis] >= 1, "expected a volume with elements")
        parts: list[Value] = []
        total = uniform(0.0, DType.FLOAT)
        taps = [c.constant(np.concatenate([_taps(n, order) for n in _SIZES if n > order])) for order in (0, 2)]
        for i in range(1 if line else 3):
            own = self._size(c, "window_size", i, 3)
            smooth = [self._size(c, "smoothing_size", k, 1) if c.given("smoothing_size") else own for k in range(3)]
            sizes: list[Scalar] = [1, 1, own] if line else [own if k == i else smooth[k] for k in range(3)]
            part = whole
            for axis in (2, 1, 0):
                order = 2 if axis == i + 2 * line else 0
                if line and axis < 2:
                    continue
                window = _window(c, taps[order // 2], sizes[axis], order, along=axis == 2)
                apply = along_depth if axis == 0 else each_slice
                part = apply(c, part, functools.partial(filtered_by, c, window))
            factor = c.scalar("scale", i)
            if c.const("normalized_kernel"):
                exponent = 3 - own if line else 5 - sizes[0] - sizes[1] - sizes[2]
                factor = ex.float32(ex.exp(exponent * math.log(2.0)))  # a power of two, exactly
            c.require(ex.isfinite(factor), "expected a finite `scale`, got {0}", factor)
            scaled = load(DType.FLOAT, i) * uniform(ex.float32(factor), DType.FLOAT)
            parts, total = [*parts, part], total + scaled if i else scaled
        out = c.pointwise(parts, total.cast(dtype))
        if line:
            return c.view(out, [ViewOp("drop", 3), ViewOp("drop", 0), ViewOp("drop", 0)], x.layout)
        return restored(c, out, c.layout(x))

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
        if x.ndim == 1:
            return self._volume_array(row, x[None, None, :, None], dtype, line=True)[0, 0, :, 0]
        if "D" in row.layout:
            return volume_array(x, row.layout, lambda volume: self._volume_array(row, volume, dtype, line=False))
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

    def _volume_array(self, row: RowContext, x: Any, dtype: DType, *, line: bool) -> Any:
        """Return the sum of the derivatives of a volume, DHWC, or of its last axis."""
        total = np.zeros(x.shape, np.float32)
        for i in range(1 if line else 3):
            sizes = _sizes(row, i, line)
            part = x.astype(np.float32)
            for axis in (2, 1, 0):
                window = _taps(sizes[axis], 2 if axis == i + 2 * line else 0)
                columns = np.moveaxis(part, axis, 0)
                flat = columns.reshape(len(columns), -1, 1)
                done = correlate_array(flat, window[:, None], len(window) // 2, 0, flat.shape[:2], "reflect_101")
                part = np.moveaxis(done.reshape(columns.shape), 0, axis)
            factor = row.number("scale", i)
            if row["normalized_kernel"]:
                factor = 2.0 ** ((1 if line else 3) + 2 - sum(size for size in sizes if not line or size > 1))
            total += part * np.float32(factor)
        return cast_array(total, dtype)


def _sizes(row: RowContext, i: int, line: bool) -> list[int]:
    """Return the sizes of the windows along D, H and W for the derivative along axis ``i``, or along the one axis."""
    own = int(row.number("window_size", i))
    if own < 3 or own % 2 == 0:
        raise ValueError("expected an odd window")
    if line:
        return [1, 1, own]
    smooth = [own if row["smoothing_size"] is None else int(row.number("smoothing_size", k)) for k in range(3)]
    return [own if k == i else smooth[k] for k in range(3)]


def _window(c: Lowering, taps: Value, size: Scalar, order: int, *, along: bool) -> Value:
    """Return the window of a size for a derivative's order, as a row or a column. ``taps``: those of all sizes."""
    first = ((order + 1) // 2) ** 2  # elements of the odd sizes up to the order, which have no window
    count = (size - 1) // 2
    place = coordinate(1 if along else 0) + uniform(count * count - first, DType.INT32)
    value = lookup(DType.FLOAT, 0, place, sum(n for n in _SIZES if n > order))
    return c.stage([taps], [(DType.FLOAT, (1, size) if along else (size, 1), "")], [[value]])[0]


def _taps(size: int, order: int) -> Any:
    """Return the window of a derivative of an order."""
    taps = np.array([1.0])
    for part in [[1.0, 1.0]] * (size - 1 - order) + [[1.0, -1.0]] * order:
        taps = np.convolve(taps, part)
    return taps.astype(np.float32)
