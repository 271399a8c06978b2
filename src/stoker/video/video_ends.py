# SPDX-License-Identifier: Apache-2.0
"""Ends of video files: whether a file has all the bytes that its own structure declares.

FFmpeg treats a file that is cut off as one that ends there, and shows what it has of the last picture.

Sources: GIF, https://www.w3.org/Graphics/GIF/spec-gif89a.txt; AVI, "OpenDML AVI File Format Extensions" 1.02; Matroska,
https://www.rfc-editor.org/rfc/rfc8794 (EBML); transport streams, ISO/IEC 13818-1 2.4.3.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import BinaryIO

from ..contract.errors import DataError
from .container_ends import EBML, end_of_known_segment
from .pyav import Source

_HEAD = 4096
_SYNC = 0x47
# Bytes of a packet of a transport stream, and where it begins in them: plain, after a time, before parity.
_PACKETS = ((188, 0), (192, 4), (204, 0))
_IMAGE, _EXTENSION, _TRAILER = b"\x2c", b"\x21", b"\x3b"


def cut_of(source: Source, form: str) -> str:
    """Return how a file is cut off, or "" if it is whole, or if its form does not say where it ends.

    Args:
        source: the path of a file, or its contents.
        form: name of FFmpeg's demuxer.

    Raises:
        OSError: the file cannot be read.
    """
    find = next((own for name, own in _CUTS.items() if form.startswith(name)), None)
    if find is None:
        return ""
    with open(source, "rb") if isinstance(source, str) else io.BytesIO(source) as file:
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        return find(file, size)


def _missing(end: int, size: int) -> str:
    return f"expected {end} bytes, as the file declares, got {size}: the file is cut off" if end > size else ""


def _cut_of_gif(file: BinaryIO, size: int) -> str:
    """Go from block to block, to the trailer."""

    def table_bytes(flags: int) -> int:
        return 3 << (flags & 7) + 1 if flags & 0x80 else 0

    header = file.read(13)
    at = 13 + table_bytes(header[10] if len(header) == 13 else 0)
    while at < size:
        file.seek(at)
        kind = file.read(1)
        if kind == _TRAILER:
            return ""
        if kind == _IMAGE:
            descriptor = file.read(9)
            at += 11 + table_bytes(descriptor[8] if len(descriptor) == 9 else 0)  # with the size of the codes
        elif kind == _EXTENSION:
            at += 2
        else:
            return f"expected a block of a GIF at byte {at}, got {kind!r}: the file is damaged"
        file.seek(at)
        while length := file.read(1):
            at += 1 + length[0]
            if not length[0]:
                break
            file.seek(at)
    return f"expected the trailer of a GIF, got {size} bytes without it: the file is cut off"


def _cut_of_avi(file: BinaryIO, size: int) -> str:
    """Go from one RIFF chunk to the next. A writer that could not return to the header leaves 0."""
    at = 0
    while at < size:
        file.seek(at)
        head = file.read(8)
        if head[:4] != b"RIFF":
            return ""  # bytes after the video
        declared = int.from_bytes(head[4:8], "little")
        if not declared:
            return ""
        at += 8 + declared + (declared & 1)
    return _missing(at, size) if at - size > 1 else ""  # the last byte may be padding


def _cut_of_stream(file: BinaryIO, size: int) -> str:
    """Divide the size by that of a packet."""
    head = file.read(4 * max(bytes_ for bytes_, _ in _PACKETS))
    for packet, first in _PACKETS:
        if len(head) >= first + 3 * packet and all(head[first + k * packet] == _SYNC for k in range(3)):
            rest = size % packet
            text = f"expected packets of {packet} bytes, got {rest} bytes at the end: the file is cut off"
            return text if rest else ""
    return ""


def _cut_of_matroska(file: BinaryIO, size: int) -> str:
    head = file.read(_HEAD)
    if not head.startswith(EBML):
        return ""
    try:
        return _missing(end_of_known_segment(head), size)
    except DataError:  # FFmpeg finds a segment elsewhere
        return ""


_CUTS: dict[str, Callable[[BinaryIO, int], str]] = {
    "gif": _cut_of_gif,
    "avi": _cut_of_avi,
    "mpegts": _cut_of_stream,
    "matroska": _cut_of_matroska,
}
