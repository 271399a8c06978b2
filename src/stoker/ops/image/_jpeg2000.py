# SPDX-License-Identifier: Apache-2.0
"""JPEG 2000 by the package ``imagecodecs``, without Python's lock.

Pillow decodes JPEG 2000 under Python's lock, because its decoder reads from a Python object; so threads decode one
image at a time. ``imagecodecs`` calls the same library, OpenJPEG, and releases the lock. It returns the components as
they are in the file. So it takes the files whose components are the pixels: no palette, no subsampling, sRGB
or gray, unsigned numbers of 8 bits (gray also of 16). Their pixels are equal to Pillow's. Pillow decodes all others.
"""

from __future__ import annotations

import functools
import importlib
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..._import_lock import IMPORT_LOCK

_START = b"\xff\x4f\xff\x51"  # of a codestream: its markers SOC and SIZ
_SIZES = struct.Struct(">2x8I")  # of SIZ from Rsiz on: extents, offset, extents of tiles, offset of tiles
_HTJ2K = 0x4000  # in Rsiz: another coder of blocks, which OpenJPEG has since version 2.5
_MOST_BOXES = 64
_SRGB, _GRAY = 16, 17  # enumerated colour spaces of the box `colr`
_MODES = {(8, 1): "L", (8, 2): "LA", (8, 3): "RGB", (8, 4): "RGBA", (16, 1): "I;16"}  # Pillow's, by bits and channels


class _Image(NamedTuple):
    """Header of a codestream of plain components."""

    height: int
    width: int
    channels: int
    bits: int


@functools.cache
def _decoder() -> Callable[..., Any] | None:
    """Return the decoder; None if the package is not installed."""
    with IMPORT_LOCK:
        try:
            decode: Callable[..., Any] = importlib.import_module("imagecodecs").jpeg2k_decode
            importlib.import_module("imagecodecs._jpeg2k")
        except (ImportError, AttributeError):  # the latter: a build without OpenJPEG
            return None
    return decode


def decode_jpeg2000(data: npt.NDArray[np.uint8], mode: str) -> npt.NDArray[Any] | None:
    """Decode a file whose components are its pixels.

    Args:
        data: the file.
        mode: Pillow's mode of the image.

    Returns:
        HW or HWC, uint8 or uint16; None if Pillow has to decode the file: also for damaged ones, whose errors are
        Pillow's.
    """
    decode = _decoder()
    if decode is None:
        return None
    content = data.tobytes()
    image = _plain_image(content)
    if image is None or _MODES.get((image.bits, image.channels)) != mode:
        return None
    try:
        pixels = np.asarray(decode(content, numthreads=1))
    except Exception:  # noqa: BLE001 - the package has error classes of its own; Pillow reports what is wrong
        return None
    shape = (image.height, image.width) if image.channels == 1 else (image.height, image.width, image.channels)
    return pixels if pixels.shape == shape and pixels.dtype == (np.uint8 if image.bits == 8 else np.uint16) else None


def _plain_image(content: bytes) -> _Image | None:
    """Return the header of an image whose components are its pixels; None for any other file."""
    try:
        if content[:4] == _START:
            return _codestream(content, 0)
        boxes = dict(_boxes(content, 0, len(content)))
        header, stream = boxes[b"jp2h"], boxes[b"jp2c"]
        inner = dict(_boxes(content, *header))
        start, end = inner[b"colr"]
        method, space = struct.unpack_from(">B2xI", content, start)
        if b"pclr" in inner or end - start < 7 or method != 1:
            return None
        image = _codestream(content, stream[0])
    except (KeyError, struct.error):
        return None
    if image is None or space != (_SRGB if image.channels > 2 else _GRAY):
        return None
    return image


def _boxes(content: bytes, at: int, end: int) -> Iterator[tuple[bytes, tuple[int, int]]]:
    """Iterate over the boxes of a file or of a box: type, and range of the content. The first of a type counts."""
    seen: set[bytes] = set()
    for _ in range(_MOST_BOXES):
        if at + 8 > end:
            return
        size, kind = struct.unpack_from(">I4s", content, at)
        head = 8
        if size == 1:
            head, (size,) = 16, struct.unpack_from(">Q", content, at + 8)
        # A size of 0 means the rest; others that do not fit are damage, which the decoder reports.
        after = at + size if head <= size <= end - at else end
        if kind not in seen:
            seen.add(kind)
            yield kind, (at + head, after)
        at = after


def _codestream(content: bytes, at: int) -> _Image | None:
    if content[at : at + 4] != _START:
        return None
    right, bottom, left, top, _, _, tile_left, tile_top = _SIZES.unpack_from(content, at + 6)
    profile, channels = struct.unpack_from(">H", content, at + 6)[0], struct.unpack_from(">H", content, at + 40)[0]
    if left or top or tile_left or tile_top or profile & _HTJ2K or not 1 <= channels <= 4:
        return None
    parts = content[at + 42 : at + 42 + 3 * channels]
    if len(parts) != 3 * channels or parts != parts[:3] * channels or parts[1:3] != b"\x01\x01":
        return None
    return _Image(bottom, right, channels, parts[0] + 1)  # a signed number would have the highest bit set
