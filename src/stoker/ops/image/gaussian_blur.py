# SPDX-License-Identifier: Apache-2.0
"""``gaussian_blur``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Launches, Value, ViewOp
from ...contract.types import DType
from ..generic.cast import cast_array
from ..geometry._axes import each_frame, image_axes
from ..geometry._volume import along_depth, each_slice, restored, spatial_axes, unfolded, volume_array
from ._correlation import TILE_ROWS, correlate_array
from ._tiles import separable_passes, tiles
from .filter import filtered_type

_LARGEST = 1 << 14
_TILE_ROWS = 32  # of a GPU block's tile (native/device/own_blur.cuh)
_NONE = (1.0, 1)  # sigma and size of a window of one element
# Types that are blurred as float32, as in DALI.
_BY_FLOAT = (DType.UINT32, DType.INT32, DType.UINT64, DType.INT64, DType.FLOAT64)


class GaussianBlur(Operator, name="gaussian_blur"):
    """Blur images and volumes. Input: HW, HWC, CHW or these with a leading F, or an axis D before H, or one axis;
    numbers. Output: the same layout.

    Rows, then columns, then the columns of a volume along D, are filtered with a sampled Gaussian. Edges are reflected
    (dcb|abcd|cba). Sums are in float32. With ``sigma`` alone the window is ``2 ceil(3 sigma) + 1`` wide; with
    ``window_size`` alone sigma is ``0.3 (radius - 1) + 0.8``. Integers of 32 and 64 bits and float64 are rounded to
    float32 first, as in DALI.
    """

    gives_bfloat16 = takes_bfloat16 = True
    exactness = "within float32 rounding"
    sigma = arg(
        "float",
        (0.0,),
        many=True,
        per_axis=True,
        per_row=True,
        doc="Standard deviation of the Gaussian in pixels: one, or one per axis, (vertical, horizontal); 0: from "
        "`window_size`. Per frame for videos, too.",
    )
    window_size = arg(
        "int",
        (0,),
        many=True,
        per_axis=True,
        per_row=True,
        doc="Odd size of the window in pixels: one, or one per axis, (vertical, horizontal); 0: from `sigma`. Per "
        "frame for videos, too.",
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
        return c.cast(self._blurred(c, x, computed), dtype)

    def _blurred(self, c: Lowering, x: Value, dtype: DType) -> Value:
        """Blur along all axes but F and C."""
        for name in ("sigma", "window_size"):
            c.expect_one_or_each(name, 1 if x.rank == 1 else 3 if "D" in c.layout(x) else 2)
        if x.rank == 1:
            line = c.view(x, [ViewOp("insert", 0)], "HW")
            return c.view(_blurred(c, line, dtype, (_NONE, self._bell(c, 0))), [ViewOp("drop", 0)], x.layout)
        if "D" not in c.layout(x):
            return _blurred(c, x, dtype, (self._bell(c, 0), self._bell(c, 1)))
        spatial_axes(c, x)
        deep, *flat = (self._bell(c, i) for i in range(3))
        whole = unfolded(c, x)
        whole = each_slice(c, whole, lambda image: _blurred(c, image, DType.FLOAT, (flat[0], flat[1])))
        whole = along_depth(c, whole, lambda image: _blurred(c, image, dtype, (deep, _NONE)))
        return restored(c, whole, c.layout(x))

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
        layout = row.layout or {1: "W", 2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        count = sum(name in "DHW" for name in layout)
        if x.ndim == 1:
            return _blurred_array(x[None, :, None], [np.ones(1, np.float32), _weights(row, 0)], dtype)[0, :, 0]
        sigmas = np.asarray(row["sigma"], np.float64)
        if "F" in layout and sigmas.ndim > 1:  # per frame
            frames = np.moveaxis(x, layout.index("F"), 0)
            rows = [RowContext({**row.args, "sigma": tuple(s)}, layouts=row.layouts) for s in sigmas]
            inner = layout.replace("F", "")
            done = [each_frame(f, inner, self._of_frame(r, dtype)) for f, r in zip(frames, rows, strict=True)]
            return np.moveaxis(np.stack(done), 0, layout.index("F"))
        if count == 2:
            return each_frame(x, layout, self._of_frame(row, dtype))
        bells = [_weights(row, i) for i in range(3)]

        def blurred(volume: Any) -> Any:
            slices = np.stack([_blurred_array(v, bells[1:], DType.FLOAT) for v in volume])
            flat = slices.reshape(len(volume), -1, 1)
            return _blurred_array(flat, [bells[0], np.ones(1, np.float32)], dtype).reshape(volume.shape)

        return volume_array(x, layout, blurred)

    @staticmethod
    def _of_frame(row: RowContext, dtype: DType) -> Callable[[Any], Any]:
        bells = [_weights(row, i) for i in (0, 1)]
        return lambda frame: _blurred_array(frame, bells, dtype)


def _blurred(c: Lowering, x: Value, dtype: DType, bells: tuple[Any, Any]) -> Value:
    """Blur images by (sigma, size) of each axis, vertical and horizontal."""
    axes = image_axes(c, x)
    for axis in axes[1:3]:
        c.require(x.shape[axis] >= 1, "expected an image with pixels")
    params = [number for bell in bells for number in bell]
    per_frame = any(c.differs_by_frame(number) for number in params)
    shape, frames = x.shape, None
    if per_frame:  # the kernel sees one frame after the other
        c.expect(axes[0] == 0, "expected a video (a leading F axis) for arguments per frame")
        frames, shape = shape[0], shape[1:]
        axes = (-1, axes[1] - 1, axes[2] - 1, max(axes[3] - 1, -1))
    sizes = x.dtype.size, DType.FLOAT.size
    tile, blocks = separable_passes(
        shape, axes, (params[1], params[3]), _TILE_ROWS, sizes, tiles(shape, axes, TILE_ROWS)
    )  # fmt: skip
    scratch_bytes = (params[1] + params[3]) * (8 + 4) + ex.where(ex.equal(blocks, 0), 0, 4 * math.prod(shape))
    own = Launches("Blur", {"weigh": 2, "tile": tile, "across": blocks, "down": blocks}, scratch_bytes)
    return c.native(
        "blur", [x], [(dtype, x.shape, x.layout)], attrs=axes, params=(*params, *axes), own=own, frames=frames,
        framed=[True],
    )[0]  # fmt: skip


def _weights(row: RowContext, i: int) -> Any:
    """Return the weights of an axis."""
    sigma, size = row.number("sigma", i), int(row.number("window_size", i))
    wide = size or 2 * math.ceil(3 * sigma) + 1
    sigma = sigma or 0.3 * ((size - 1) / 2 - 1) + 0.8
    bell = np.exp(-((np.arange(wide) - wide // 2) ** 2) / (2 * sigma * sigma))
    return (bell / bell.sum()).astype(np.float32)


def _blurred_array(frame: Any, bells: list[Any], dtype: DType) -> Any:
    """Blur one HWC image in NumPy."""
    down, across = bells
    middle = correlate_array(frame, across[None], 0, len(across) // 2, frame.shape[:2], "reflect_101")
    return cast_array(correlate_array(middle, down[:, None], len(down) // 2, 0, frame.shape[:2], "reflect_101"), dtype)
