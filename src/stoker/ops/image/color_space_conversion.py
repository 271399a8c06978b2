# SPDX-License-Identifier: Apache-2.0
"""``color_space_conversion``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import COLOURS, Operator, RowContext
from ...contract.pixel import Px, load, unary, uniform
from ...contract.step import Value
from ...contract.types import DType, ImageType

RGB, BGR, GRAY, YCBCR = ImageType.RGB, ImageType.BGR, ImageType.GRAY, ImageType.YCbCr

# Pillow's luma, in 16.16 fixed point.
_LUMA = (19595, 38470, 7471)
# ITU-R BT.601, limited range.
_TO_YCBCR = (
    (0.25678824, 0.50412941, 0.09790588, 16.0),
    (-0.14822290, -0.29099279, 0.43921569, 128.0),
    (0.43921569, -0.36778831, -0.07142737, 128.0),
)
_GRAY_TO_Y = (0.85882353, 16.0)
_Y, _CR_R, _CB_G, _CR_G, _CB_B = 1.1643835, 1.5960267, 0.39176229, 0.81296764, 2.0172321


class ColorSpaceConversion(Operator, name="color_space_conversion"):
    """Convert between RGB, BGR, GRAY and YCbCr. Input: uint8, HWC, CHW, FHWC or FCHW. Output: the same layout, uint8.

    Grey is Pillow's ``convert("L")`` bit for bit (DALI's differs by at most 1). YCbCr is ITU-R BT.601 with its limited
    range, 16 to 235, as in DALI; it is not the full-range YCbCr that JPEG files hold and that
    ``decoders.image(output_type=types.YCbCr)`` gives.
    """

    default_layouts = (*COLOURS, "FDHWC")
    image_type = arg("image_type", choices=(RGB, BGR, GRAY, YCBCR), doc="Colour model of the input.")
    output_type = arg("image_type", choices=(RGB, BGR, GRAY, YCBCR), doc="Colour model of the output.")
    cases = (
        {"image_type": "RGB", "output_type": "GRAY"},
        {"image_type": "RGB", "output_type": "YCbCr"},
        {"image_type": "YCbCr", "output_type": "BGR"},
        {"image_type": "BGR", "output_type": "RGB"},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        count = 1 if case["image_type"] == "GRAY" else 3
        return [(x[:, :, :count].copy(),) for (x,) in samples.images()]

    def lower(self, c: Lowering, x: Value) -> Value:
        if x.dtype != DType.UINT8:
            raise UnsupportedError(f"`color_space_conversion`: expected uint8, got {x.dtype}. Cast the images first")
        source, target, at = c.const("image_type"), c.const("output_type"), c.axis(x, "C")
        count = 1 if source == GRAY else 3
        c.require(
            ex.equal(x.shape[at], count),
            f"expected {{0}} channels of a {source.name} image, got {{1}}",
            count,
            x.shape[at],
        )
        return c.channelled(x, _program(source, target), at)

    def reference(self, row: RowContext, x: Any) -> Any:
        at = (row.layout or {3: "HWC", 4: "FHWC"}[x.ndim]).index("C")
        source, target = row["image_type"], row["output_type"]
        channels = np.moveaxis(x, at, 0)
        if len(channels) != (1 if source == GRAY else 3):
            raise ValueError(f"expected a {source.name} image, got {len(channels)} channels")
        if source == BGR:
            channels, source = channels[::-1], RGB
        flipped, target = target == BGR, RGB if target == BGR else target
        out = channels if source == target else _CONVERT[source, target](channels)
        return np.moveaxis(out[::-1] if flipped else out, 0, at)


def _program(source: ImageType, target: ImageType) -> list[Px]:
    """Return one expression per output channel."""
    plain = [load(DType.UINT8, channel=k) for k in range(1 if source == GRAY else 3)]
    if source == target:
        return plain
    if source == GRAY and target in (RGB, BGR):
        return plain * 3
    wide = [p.cast(DType.FLOAT) for p in plain]
    if source == GRAY:
        middle = uniform(128, DType.UINT8)
        return [(wide[0] * _GRAY_TO_Y[0] + _GRAY_TO_Y[1]).cast(DType.UINT8), middle, middle]
    if source == YCBCR:
        y = (wide[0] - 16.0) * _Y
        if target == GRAY:
            return [y.cast(DType.UINT8)]
        cb, cr = wide[1] - 128.0, wide[2] - 128.0
        rgb = [v.cast(DType.UINT8) for v in (y + cr * _CR_R, y - cb * _CB_G - cr * _CR_G, y + cb * _CB_B)]
        return rgb if target == RGB else rgb[::-1]
    if source == BGR:
        plain, wide = plain[::-1], wide[::-1]
    if target == GRAY:
        # Floats are faster than integers here, and exact: all sums are multiples of 2**-16 below 2**8.
        r, g, b = (v * (w / 65536) for v, w in zip(wide, _LUMA, strict=True))
        return [unary("floor", r + 0.5 + g + b).cast(DType.UINT8)]
    if target == YCBCR:
        return [(wide[0] * r + wide[1] * g + wide[2] * b + offset).cast(DType.UINT8) for r, g, b, offset in _TO_YCBCR]
    return plain if target == RGB else plain[::-1]


def _bytes(values: list[Any]) -> Any:
    return np.stack([np.rint(v).clip(0, 255).astype(np.uint8) for v in values])


def _to_ycbcr(x: Any) -> Any:
    r, g, b = x.astype(np.float32)
    return _bytes([i * r + j * g + k * b + o for i, j, k, o in np.asarray(_TO_YCBCR, np.float32)])


def _from_ycbcr(x: Any) -> Any:
    y, cb, cr = x.astype(np.float32)
    y, cb, cr = np.float32(_Y) * (y - 16), cb - 128, cr - 128
    green = y - np.float32(_CB_G) * cb - np.float32(_CR_G) * cr
    return _bytes([y + np.float32(_CR_R) * cr, green, y + np.float32(_CB_B) * cb])


_CONVERT: dict[tuple[ImageType, ImageType], Callable[[Any], Any]] = {
    (RGB, GRAY): lambda x: (np.tensordot(_LUMA, x.astype(np.int64), 1)[None] + 32768 >> 16).astype(np.uint8),
    (RGB, YCBCR): _to_ycbcr,
    (YCBCR, RGB): _from_ycbcr,
    (YCBCR, GRAY): lambda x: _bytes([np.float32(_Y) * (x[0].astype(np.float32) - 16)]),
    (GRAY, RGB): lambda x: np.repeat(x, 3, 0),
    (GRAY, YCBCR): lambda x: _bytes(
        [np.float32(_GRAY_TO_Y[0]) * x[0] + np.float32(_GRAY_TO_Y[1]), *[np.full(x.shape[1:], 128.0)] * 2]
    ),
}
