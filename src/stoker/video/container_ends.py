# SPDX-License-Identifier: Apache-2.0
"""Ends of container files: whether a file has all the bytes that its own structure declares.

FFmpeg treats a file that is cut off as one that ends there.

Sources: MP4, ISO/IEC 14496-12 4.2; ADTS, ISO/IEC 13818-7 6.2; Matroska, https://www.rfc-editor.org/rfc/rfc8794 (EBML);
ASF, "Advanced Systems Format Specification" 3.2; WavPack, "WavPack 4 & 5 Binary File / Block Format" 2.0.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ..contract.errors import DataError

EBML = b"\x1a\x45\xdf\xa3"
ASF = bytes.fromhex("3026b2758e66cf11a6d900aa0062ce6c")
_SEGMENT = b"\x18\x53\x80\x67"
_ASF_PROPERTIES = bytes.fromhex("a1dcab8c47a9cf118ee400c00c205365")
_BROADCAST = 1  # flag of an ASF file whose writer did not know its size
_TAGS = (b"TAG", b"APETAGEX", b"LYRICSBE", b"ID3", b"3DI")


def after_id3(data: Any) -> int:
    """Return the first byte after ID3v2 tags. Source: https://id3.org/id3v2.4.0-structure."""
    at = 0
    while bytes(data[at : at + 3]) == b"ID3" and len(data) >= at + 10:
        size = 0
        for byte in bytes(data[at + 6 : at + 10]):
            size = size << 7 | byte & 0x7F
        at += 10 + size + (10 if data[at + 5] & 0x10 else 0)
    return at


def adts_bytes(header: bytes) -> int:
    """Return the size of the ADTS frame that begins with seven bytes, or 0 if none does."""
    if len(header) < 7 or header[0] != 0xFF or header[1] & 0xF6 != 0xF0 or header[2] >> 2 & 15 > 12:
        return 0
    size = (header[3] & 3) << 11 | header[4] << 3 | header[5] >> 5
    return size if size >= 7 else 0


def require_whole(data: bytes, form: str) -> None:
    """Refuse a file that is cut off.

    Args:
        data: the file.
        form: name of FFmpeg's demuxer: mov, aac, matroska, asf or wv.

    Raises:
        DataError: the file ends before its declared end, or has other bytes between its parts.
    """
    end = _ENDS[form](data)
    if end > len(data):
        raise DataError(f"expected {end} bytes, as the file declares, got {len(data)}: the file is cut off")


def _end_of_boxes(data: bytes) -> int:
    """Return the end of the boxes of an MP4 file."""
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        least = 8
        if size == 1:
            size, least = int.from_bytes(data[at + 8 : at + 16], "big"), 16
        if size == 0 and len(data) - at >= 8:  # to the end of the file
            return len(data)
        if size < least and len(data) - at >= least:
            raise DataError(f"expected a box of at least {least} bytes at byte {at}, got {size}: the file is damaged")
        at += max(size, least)
    return at


def movie_tick(data: bytes) -> Fraction:
    """Return the unit of durations in edit lists of an MP4 file, in seconds (box `mvhd`)."""
    at = data.find(b"mvhd") + 4
    scale_at = at + (20 if at < len(data) and data[at] == 1 else 12)
    scale = int.from_bytes(data[scale_at : scale_at + 4], "big")
    return Fraction(1, scale) if at >= 4 and scale else Fraction(0)


def _end_of_frames(data: bytes) -> int:
    """Return the end of the frames of an ADTS file."""
    at = after_id3(data)
    while at < len(data):
        size = adts_bytes(data[at : at + 7])
        if not size:
            if data.startswith(_TAGS, at) or not data[at : at + 64].strip(b"\0"):
                return at
            if len(data) - at < 7:
                return at + 7
            raise DataError(f"expected an ADTS frame at byte {at}, got {data[at : at + 7]!r}: the file is damaged")
        at += size
    return at


def _end_of_blocks(data: bytes) -> int:
    """Return the end of the blocks of a WavPack file."""
    at = 0
    while at < len(data) and not data.startswith(_TAGS, at):
        if len(data) - at < 8:
            return at + 8
        if not data.startswith(b"wvpk", at):
            raise DataError(f"expected a block of WavPack at byte {at}, got {data[at : at + 4]!r}: the file is damaged")
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "little")
    return at


def _vint(data: bytes, at: int) -> tuple[int | None, int]:
    """Return the size of an EBML element, None if it is unknown, and the number of its bytes."""
    first = data[at] if at < len(data) else 0
    length = 9 - first.bit_length()
    if length > 8 or at + length > len(data):
        raise DataError(f"expected the size of an element at byte {at}: the file is damaged or cut off")
    value = int.from_bytes(data[at : at + length], "big") & ((1 << 7 * length) - 1)
    return (None if value == (1 << 7 * length) - 1 else value), length


def end_of_known_segment(head: bytes) -> int:
    """Return the end of the segment of a Matroska file that begins with ``head``; 0 if its size is unknown.

    Raises:
        DataError: there is no segment.
    """
    size, at = _segment(head)
    return 0 if size is None else at + size


def _segment(data: bytes) -> tuple[int | None, int]:
    """Return the size of the segment of a Matroska file, None if it is unknown, and its first byte."""
    size, length = _vint(data, 4)
    at = 4 + length + (size or 0)
    if not data.startswith(_SEGMENT, at):
        raise DataError(f"expected a Matroska segment at byte {at}, got {data[at : at + 4]!r}: the file is damaged")
    size, length = _vint(data, at + 4)
    return size, at + 4 + length


def _end_of_segment(data: bytes) -> int:
    """Return the end of the segment of a Matroska file; of one of unknown size, the end of its last known element."""
    size, at = _segment(data)
    if size is not None:
        return at + size
    while at < len(data):
        bytes_of_name = 9 - data[at].bit_length()
        size, length = _vint(data, at + bytes_of_name)
        if size is None:  # a cluster of unknown size, whose end is the next one's beginning
            return len(data)
        at += bytes_of_name + length + size
    return at


def _end_of_asf(data: bytes) -> int:
    """Return the size that an ASF file declares."""
    header = int.from_bytes(data[16:24], "little")
    at = data.find(_ASF_PROPERTIES, 0, min(header, len(data)))
    if header > len(data) or at < 0 or at + 104 > len(data):
        raise DataError("expected an ASF file with the properties of the file in its header, got none")
    is_broadcast = data[at + 88] & _BROADCAST
    return 0 if is_broadcast else int.from_bytes(data[at + 40 : at + 48], "little")


_ENDS: dict[str, Callable[[bytes], int]] = {
    "mov": _end_of_boxes,
    "aac": _end_of_frames,
    "matroska": _end_of_segment,
    "asf": _end_of_asf,
    "wv": _end_of_blocks,
}
