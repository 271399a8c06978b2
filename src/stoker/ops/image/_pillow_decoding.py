# SPDX-License-Identifier: Apache-2.0
"""Decoding with Pillow: the Python twins of the image decoders' native steps, and their reference."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..._image_formats import NAMES, open_image, pillow
from ...contract.errors import DataError
from ...contract.types import DType, ImageType
from ...contract.warning import ignored
from ...native import _native

_WITH_PALETTE = ("P", "PA")
_TIFF_BITS = 258  # the tag of bits per channel
_TIFF_SIZE = (256, 257)  # the tags of width and height
# Numbers of PIL.Image.Transpose that undo an orientation.
_TURNED_BACK = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}
# Pillow's raw modes of 32 bits with the high byte first, and those in the processor's order.
_NATIVE_ORDER = {"F;32BF": "F;32NF", "I;32B": "I;32N", "I;32BS": "I;32NS"}
_BAND_PIXELS = 1 << 20  # of an image that is averaged, at a time
_MODES = {ImageType.RGB: "RGB", ImageType.BGR: "RGB", ImageType.YCbCr: "YCbCr", ImageType.GRAY: "L"}


def _open(data: npt.NDArray[np.uint8]) -> Any:
    Image = pillow()
    from PIL import UnidentifiedImageError

    with ignored(Image.DecompressionBombWarning):  # `_require_pixels` checks the limit
        try:
            return open_image(io.BytesIO(data.data))
        except Image.DecompressionBombError as error:
            raise DataError(f"{error}; `PIL.Image.MAX_IMAGE_PIXELS` is Pillow's own limit") from error
        except UnidentifiedImageError:
            start = bytes(data[:8])
            raise DataError(
                f"expected an image that Pillow can read, got {len(data)} bytes that begin with {start!r}; the "
                f"formats are {NAMES}"
            ) from None


def _require_pixels(image: Any, max_pixels: int) -> None:
    """Require a size within the limit. Call it before any method of an opened image: several of them decode."""
    width, height = image.size
    if max_pixels and width * height > max_pixels:
        raise DataError(
            f"expected at most {max_pixels} pixels, got an image of {height} x {width} (a decompression bomb?); "
            "`max_pixels` allows more"
        )


def _orientation(image: Any, adjust: bool) -> int:
    if not adjust:
        return 1
    try:
        value = image.getexif().get(0x0112, 1)
    except Exception:  # noqa: BLE001 - a damaged EXIF block says nothing about the pixels
        return 1
    return value if value in range(1, 9) else 1


def _stored_size(image: Any) -> tuple[int, int]:
    """Return width and height as stored. For TIFF files, Pillow has those of the image as displayed."""
    width, height = (image.tag_v2[tag] for tag in _TIFF_SIZE) if image.format == "TIFF" else image.size
    return width, height


def _loaded(image: Any) -> Any:
    """Load an image as stored. Pillow turns TIFF files as their orientation says, whatever the caller wants."""
    turned = _orientation(image, True) if image.format == "TIFF" else 1
    if image.format == "TIFF":
        image.tile = [_in_native_order(tile) for tile in image.tile]
    image.load()
    return image if turned == 1 else image.transpose(_TURNED_BACK[turned])


def _in_native_order(tile: Any) -> Any:
    """Return a tile of a TIFF file for values of 32 bits as libtiff gives them: in the processor's order of bytes.

    Pillow (13.0) does so for values of 16 bits only. Without this, compressed floats of big-endian files are wrong.
    """
    rawmode = tile.args[0] if tile.codec_name == "libtiff" else ""
    return tile._replace(args=(_NATIVE_ORDER[rawmode], *tile.args[1:])) if rawmode in _NATIVE_ORDER else tile


def _any_channels(image: Any, indices: bool = False) -> int:
    if indices and image.mode in _WITH_PALETTE:
        return 1
    return {"1": 1, "L": 1, "I": 1, "F": 1, "I;16": 1, "I;16B": 1, "LA": 2, "RGBA": 4, "PA": 4}.get(
        image.mode, 4 if image.mode == "P" and "transparency" in image.info else 3
    )


def twin_peek(output_type: ImageType, adjust: bool, scale: int, max_pixels: int, indices: bool) -> Callable[..., None]:
    def twin(inputs: Sequence[Any], params: Sequence[float], outputs: Sequence[Any]) -> None:
        image = _open(inputs[0])
        _require_pixels(image, max_pixels)
        width, height = (-(-extent // scale) for extent in _stored_size(image))
        if _orientation(image, adjust) >= 5:
            width, height = height, width
        channels = {ImageType.GRAY: 1, ImageType.ANY_DATA: _any_channels(image, indices)}.get(output_type, 3)
        outputs[0][:] = height, width, channels

    return twin


def twin_decode(
    output_type: ImageType,
    adjust: bool,
    scale: int,
    max_scan_pixels: int,
    dtype: DType,
    indices: bool,
    keeps_floats: bool,
) -> Callable[..., None]:
    def twin(inputs: Sequence[Any], params: Sequence[float], outputs: Sequence[Any]) -> None:
        whole = pillow_decode(inputs[0], output_type, adjust, scale, max_scan_pixels, dtype, indices, keeps_floats)
        out = outputs[0]
        y, x = int(params[0]), int(params[1])
        out[:] = whole[y : y + out.shape[0], x : x + out.shape[1]]

    return twin


def pillow_decode(
    data: npt.NDArray[np.uint8], output_type: ImageType, adjust: bool, scale: int = 1, max_scan_pixels: int = 0,
    dtype: DType = DType.UINT8, indices: bool = False, keeps_floats: bool = True,
) -> npt.NDArray[Any]:  # fmt: skip
    """Decode with Pillow, HWC. Transparency is dropped.

    At a smaller scale, pixels are means of ``scale`` x ``scale`` pixels of the whole image.

    Args:
        dtype: UINT8; or UINT16 or FLOAT, not with YCbCr, which keep the values of files with more than 8 bits.
        indices: files with a palette give its indices, in one channel.
        keeps_floats: with ANY_DATA and FLOAT, files of floats and 32-bit integers keep their values.
    """
    image = _open(data)
    if dtype != DType.UINT8 and (bits := _bits_lost(image, data)):
        raise DataError(
            f"expected 8 bits per channel of an image with several channels for {dtype}, got {bits}: Pillow reads such "
            "files with 8 bits. `dtype=types.UINT8` takes these"
        )
    orientation = _orientation(image, adjust)
    jpeg = image.format in ("JPEG", "MPO")
    width, height = _stored_size(image)
    if jpeg and (reason := _native.jpeg.too_many_scans(data.tobytes(), width, height, max_scan_pixels)):
        raise DataError(reason)
    form = _Form(output_type, dtype, indices, image.format in ("PNG", "PPM"), keeps_floats)
    try:
        if jpeg and output_type in (ImageType.GRAY, ImageType.YCbCr) and image.mode in ("RGB", "L"):
            # Uses libjpeg's own planes instead of a conversion back from RGB.
            image.draft(_MODES[output_type], image.size)
        image = _loaded(image)
    except (OSError, SyntaxError, ValueError, EOFError) as error:
        raise DataError(str(error)) from error
    if scale == 1:
        return apply_orientation(_converted(image, form), orientation)
    if indices and image.mode in _WITH_PALETTE:
        raise DataError("expected `scale_denom` 1 for palette indices, which have no mean")
    # In bands of rows: the pixels of the whole image in full size would take several times the memory of the result.
    band = scale * max(1, _BAND_PIXELS // (scale * width))
    means = [
        _means(_converted(image.crop((0, top, width, min(top + band, height))), form), scale)
        for top in range(0, height, band)
    ]
    return apply_orientation(np.concatenate(means), orientation)


def _bits_lost(image: Any, data: npt.NDArray[np.uint8]) -> int:
    """Return the bits per channel of a file of which Pillow keeps 8; 0 if it keeps all."""
    if image.mode.startswith(("I", "F")):
        return 0
    if image.format == "JPEG2000":
        at = data.tobytes().find(b"\xff\x4f\xff\x51")  # the codestream's sizes
        bits = (int(data[at + 42]) & 0x7F) + 1 if 0 <= at < len(data) - 42 else 8
        return bits if bits > 8 else 0
    if image.format == "AVIF":
        at = data.tobytes().find(b"av1C")
        return 10 if 0 <= at < len(data) - 6 and data[at + 6] & 0x40 else 0
    if image.format == "TIFF":
        return next((b for b in image.tag_v2.get(_TIFF_BITS, ()) if b > 8), 0)
    arguments = image.tile[0][3] if image.tile else ""
    parts = arguments if isinstance(arguments, (tuple, list)) else (arguments,)
    if image.format == "PPM":  # the largest value
        return 16 if any(isinstance(p, int) and p > 255 for p in parts) else 0
    return 16 if any(isinstance(p, str) and ";16" in p for p in parts) else 0


class _Form(NamedTuple):
    """Form of the pixels that are wanted of an image.

    Attributes:
        has_16_bits: integers of Pillow's mode "I" have 16 bits in this file's format.
        keeps_floats: see :func:`pillow_decode`.
    """

    output_type: ImageType
    dtype: DType
    indices: bool
    has_16_bits: bool
    keeps_floats: bool


def _converted(image: Any, form: _Form) -> npt.NDArray[Any]:
    """Return the pixels of a loaded image, HWC."""
    output_type, dtype = form.output_type, form.dtype
    if image.mode.startswith(("I", "F")):
        # Floats and integers of 32 bits have no range that they could be scaled by.
        keeps_values = output_type == ImageType.ANY_DATA and (form.keeps_floats or dtype != DType.FLOAT)
        unscaled = not _has_16_bits(image, form) and not keeps_values
        values = _values(image, DType.UINT8 if unscaled else dtype, form)[..., None]
        if output_type in (ImageType.RGB, ImageType.BGR):
            values = np.repeat(values, 3, -1)
        elif output_type == ImageType.YCbCr:
            values = np.asarray(pillow().fromarray(values[..., 0]).convert("YCbCr"))
        return _widened(values, dtype) if unscaled else values
    if form.indices and image.mode in _WITH_PALETTE:
        return np.asarray(image if image.mode == "P" else image.getchannel(0))[..., None]
    if output_type == ImageType.ANY_DATA:
        mode = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[_any_channels(image)]
        image = image if image.mode == mode else image.convert(mode)
    elif image.mode == "P" and "transparency" in image.info:
        image = image.convert("RGBA")
    if output_type != ImageType.ANY_DATA and image.mode != _MODES[output_type]:
        image = image.convert("RGB") if image.mode in ("RGBA", "LA", "PA", "CMYK") else image
        image = image.convert(_MODES[output_type])
    pixels = np.asarray(image)
    pixels = pixels[..., None] if pixels.ndim == 2 else pixels
    return _widened(pixels[..., ::-1] if output_type == ImageType.BGR else pixels, dtype)


def _widened(pixels: npt.NDArray[np.uint8], dtype: DType) -> npt.NDArray[Any]:
    """Return bytes as UINT8, or scaled to the range of UINT16 or FLOAT."""
    if dtype == DType.UINT16:
        return pixels.astype(np.uint16) * np.uint16(257)
    return pixels.astype(np.float32) * np.float32(1 / 255) if dtype == DType.FLOAT else pixels


def _has_16_bits(image: Any, form: _Form) -> bool:
    """Return whether an image of Pillow's modes "I" and "F" has integers of 16 bits."""
    return image.mode.startswith("I;16") or (image.mode == "I" and form.has_16_bits)


def _values(image: Any, dtype: DType, form: _Form) -> npt.NDArray[Any]:
    """Return the pixels of an image with one channel of more than 8 bits. A conversion that loses values is refused."""
    values = np.asarray(image)
    if _has_16_bits(image, form):
        values = values.clip(0, 65535).astype(np.uint16)
        if dtype == DType.UINT16:
            return values
        if dtype == DType.FLOAT:
            return values.astype(np.float32) * np.float32(1 / 65535)
        return (values >> 8).astype(np.uint8)
    kind, numbers = "floats" if image.mode == "F" else "32-bit integers", f"{values.min():g} to {values.max():g}"
    if dtype == DType.FLOAT:
        floats = values.astype(np.float32)
        if image.mode == "I" and not np.array_equal(floats.astype(np.float64), values):
            raise DataError(f"expected {kind} that float32 holds exactly, got {numbers}")
        return floats
    whole = _whole(values, dtype)
    if whole is None:
        raise DataError(
            f"expected whole numbers from 0 to {int(dtype.positive_range)} in a file of {kind}, for {dtype}, got "
            f"{numbers}. `output_type=types.ANY_DATA` with `dtype=types.FLOAT` keeps the values"
        )
    return whole


def _whole(values: npt.NDArray[Any], dtype: DType) -> npt.NDArray[Any] | None:
    """Return whole numbers as integers; None if a value does not fit."""
    with np.errstate(invalid="ignore"):
        fits = (values >= 0) & (values <= dtype.positive_range) & (values == np.floor(values))
    return values.astype(dtype.numpy) if fits.all() else None


def _means(pixels: npt.NDArray[Any], side: int) -> npt.NDArray[Any]:
    """Return means of squares of pixels, smaller ones at the lower and right edge. Halves of integers round up."""
    whole = pixels.dtype.kind == "u"
    sums, counts = pixels, np.ones((1, 1, 1), np.uint32)
    for axis in (0, 1):
        starts = np.arange(0, pixels.shape[axis], side)
        sums = np.add.reduceat(sums, starts, axis, dtype=np.uint32 if whole else np.float64)
        rows = np.diff([*starts, pixels.shape[axis]]).astype(np.uint32)
        counts = counts * (rows[:, None, None] if axis == 0 else rows[None, :, None])
    means = (2 * sums + counts) // (2 * counts) if whole else sums / counts
    return np.asarray(means.astype(pixels.dtype))


def apply_orientation(pixels: npt.NDArray[Any], orientation: int) -> npt.NDArray[Any]:
    """Return stored pixels in the orientation that EXIF specifies for display."""
    if orientation >= 5:
        pixels = pixels.swapaxes(0, 1)
    flip_rows, flip_columns = {
        2: (False, True), 3: (True, True), 4: (True, False), 6: (False, True), 7: (True, True), 8: (True, False)
    }.get(orientation, (False, False))  # fmt: skip
    return pixels[:: -1 if flip_rows else 1, :: -1 if flip_columns else 1]
