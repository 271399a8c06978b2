# SPDX-License-Identifier: Apache-2.0
"""Colors of decoded frames: integer arithmetic with the stream's own matrix and range (ITU-T H.273).

A channel is the sum of luma and chroma, as differences to their zeros, with weights of 13 fractional bits; the sum is
rounded with halves up and clamped to a byte. A chroma sample holds for all pixels that share it. Streams that state no
matrix have BT.601's and those that state no range the limited one, as in FFmpeg.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..contract.errors import DataError
from ..contract.types import ImageType
from ..native import _native
from .motion_jpeg import JpegPicture

Bytes = npt.NDArray[np.uint8]

RGB, BGR, STORED = 0, 1, 2  # order of channels; stored: luma and chroma as they are, in eight bits
CHANNEL_ORDERS = {ImageType.RGB: RGB, ImageType.BGR: BGR, ImageType.YCbCr: STORED}
FRACTION_BITS = 13

_BT601 = (0.299, 0.114)
# Weights of red and blue in luma, by FFmpeg's number of the matrix.
MATRICES = {
    1: (0.2126, 0.0722), 2: _BT601, 4: (0.30, 0.11), 5: _BT601, 6: _BT601, 7: (0.212, 0.087), 9: (0.2627, 0.0593),
}  # fmt: skip
_FULL_RANGE = 2
_FORMAT = re.compile(r"(?:yuv(j?)a?(4[0-4][0-4])p|gray)(9|10|12|14|16)?(le)?")
_SHIFTS = {"420": (1, 1), "422": (1, 0), "444": (0, 0), "440": (0, 1), "411": (2, 0), "410": (2, 2)}


def write_pixels(frame: Any, order: int, out: npt.NDArray[Any]) -> None:
    """Convert a frame to bytes, or to words, whose values are 257 times as large.

    Args:
        frame: PyAV's frame, or a picture of Motion JPEG.
        order: RGB, BGR or STORED.
        out: contiguous uint8 or uint16 ``(height, width, 3)``.

    Raises:
        DataError: the frame has a pixel format or a matrix that is not supported.
    """
    if isinstance(frame, JpegPicture):
        _write_jpeg(frame, order, out)
        return
    form = form_of(frame.format.name)
    if form is None:
        _write_rgb(frame, order, out)
        return
    number, full_range = frame_colors(frame, form)
    matrix = MATRICES.get(number)
    if matrix is None:
        raise DataError(
            f"expected frames with the matrix of BT.601, BT.709 or BT.2020, got the matrix {number} of H.273"
        )
    planes = frame.planes[: form.planes]
    _native.video.convert(
        [np.frombuffer(p, np.uint8) for p in planes], [p.line_size for p in planes], form.shifts, form.bits, matrix,
        full_range, order, out,
    )  # fmt: skip


def frame_colors(frame: Any, form: Form) -> tuple[int, bool]:
    """Return FFmpeg's number of a frame's matrix, and whether its samples have the full range."""
    return int(frame.colorspace), form.full_range or int(frame.color_range) == _FULL_RANGE


class Form(NamedTuple):
    """Planes of luma and chroma: their number, the columns and rows per chroma sample as powers of two, bits."""

    planes: int
    shifts: tuple[int, int]
    bits: int
    full_range: bool


@functools.lru_cache
def form_of(name: str) -> Form | None:
    """Return what FFmpeg's name of a pixel format says; None if its frames have no planes of luma and chroma."""
    match = _FORMAT.fullmatch(name)
    if match is None or (match[3] and not match[4]):
        return None
    return Form(3 if match[2] else 1, _SHIFTS.get(match[2], (0, 0)), int(match[3] or 8), bool(match[1]))


def _write_jpeg(picture: JpegPicture, order: int, out: npt.NDArray[Any]) -> None:
    """Decode a picture of Motion JPEG; its values have eight bits."""
    channels = ("RGB", "BGR", "YCbCr")[order]
    if out.dtype == np.uint8:
        picture.write(channels, out)
        return
    pixels = np.empty(out.shape, np.uint8)
    picture.write(channels, pixels)
    np.multiply(pixels, np.uint16(256 if order == STORED else 257), out=out)


def _write_rgb(frame: Any, order: int, out: npt.NDArray[Any]) -> None:
    """Convert a frame that has red, green and blue already."""
    if not frame.format.is_rgb or order == STORED:
        wanted = "luma and chroma" if order == STORED else "RGB, or luma and chroma in planes"
        raise DataError(f"expected frames of {wanted}, got the pixel format {frame.format.name!r}")
    in_bytes = out.dtype == np.uint8 or all(c.bits <= 8 for c in frame.format.components)
    names = ("rgb24", "bgr24") if in_bytes else ("rgb48le", "bgr48le")
    pixels = frame.to_ndarray(format=names[order == BGR])
    out[:] = pixels if pixels.dtype == out.dtype else pixels * np.uint16(257)


def weights(matrix: tuple[float, float], *, full_range: bool, extra: int, scale: int = 1) -> dict[str, int]:
    """Return the integer weights of a conversion from samples of ``8 + extra`` bits, and the zeros of the samples."""
    kr, kb = matrix
    kg, one = 1 - kr - kb, 1 << FRACTION_BITS
    luma = 255 * (1 << extra) / ((256 << extra) - 1) if full_range else 255 / 219
    chroma = luma if full_range else 255 / 224
    parts = {
        "luma": luma, "red_v": 2 * (1 - kr) * chroma, "green_u": -2 * kb * (1 - kb) / kg * chroma,
        "green_v": -2 * kr * (1 - kr) / kg * chroma, "blue_u": 2 * (1 - kb) * chroma,
    }  # fmt: skip
    return {k: int(np.floor(abs(x) * scale * one + 0.5)) * (1 if x > 0 else -1) for k, x in parts.items()} | {
        "luma_zero": 0 if full_range else 16 << extra, "chroma_zero": 128 << extra
    }  # fmt: skip


def convert_plain(
    planes: Sequence[npt.NDArray[Any]], shifts: tuple[int, int], bits: int, matrix: tuple[float, float],
    full_range: bool, order: int, dtype: Any = np.uint8,
) -> npt.NDArray[Any]:  # fmt: skip
    """Convert planes of samples in plain NumPy: the meaning of the native conversion."""
    most, scale = (255, 1) if dtype == np.uint8 else (65535, 257)
    extra = bits - 8
    height, width = planes[0].shape
    y = planes[0].astype(np.int64)
    if len(planes) == 1:
        u = v = np.full_like(y, 128 << extra)
    else:
        u, v = (
            p.astype(np.int64).repeat(1 << shifts[1], 0).repeat(1 << shifts[0], 1)[:height, :width] for p in planes[1:]
        )
    if order == STORED and scale > 1:
        return np.stack([p << (8 - extra) for p in (y, u, v)], -1).astype(dtype)
    if order == STORED:
        half = (1 << extra) >> 1
        return np.stack([((p + half) >> extra).clip(0, 255) for p in (y, u, v)], -1).astype(np.uint8)
    w = weights(matrix, full_range=full_range, extra=extra, scale=scale)
    y, u, v = (y - w["luma_zero"]) * w["luma"], u - w["chroma_zero"], v - w["chroma_zero"]
    sums = (y + w["red_v"] * v, y + w["green_u"] * u + w["green_v"] * v, y + w["blue_u"] * u)
    shift = FRACTION_BITS + extra
    pixels = np.stack([((s + (1 << (shift - 1))) >> shift).clip(0, most) for s in sums], -1).astype(dtype)
    return pixels[..., ::-1] if order == BGR else pixels
