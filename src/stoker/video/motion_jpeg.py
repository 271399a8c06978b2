# SPDX-License-Identifier: Apache-2.0
"""Frames of Motion JPEG by the package's own JPEG decoder.

A packet of Motion JPEG is a JPEG file. Its frame is the picture that ``decoders.image`` gives of the same bytes: the
integer transform and the interpolated chroma of libjpeg, with BT.601 and the full range. FFmpeg decodes the packets
that are not such a file, for example pairs of fields, and each packet alone decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import DataError
from ..native import _native
from .frame_index import FrameIndex

CODEC = "mjpeg"
# FFmpeg's numbers of the matrices that JPEG files have: BT.601's, or none stated.
_MATRICES = (2, 5, 6)
# Comment by which writers say that samples have the limited range, although JPEG files have the full one.
_LIMITED = b"CS=ITU601"
_START, _END, _MARKER = b"\xff\xd8", b"\xff\xd9", 0xFF
_TABLES, _SCAN, _COMMENT, _ADOBE, _FRAMES = 0xC4, 0xDA, 0xFE, 0xEE, (0xC0, 0xC1, 0xC2)
_TAIL = 64  # bytes in which the end marker is searched: containers fill packets up


def _table(kind: int, counts: str, symbols: str) -> bytes:
    return bytes([kind]) + bytes.fromhex(counts) + bytes.fromhex(symbols)


def _standard_tables() -> bytes:
    """Return the Huffman tables of ITU-T T.81, tables K.3 to K.6, as a segment."""
    symbols = "000102030405060708090a0b"
    content = (
        _table(0x00, "00010501010101010100000000000000", symbols)
        + _table(0x01, "00030101010101010101010000000000", symbols)
        + _table(
            0x10, "0002010303020403050504040000017d",
            "01020300041105122131410613516107227114328191a1082342b1c11552d1f02433627282090a161718191a25262728292a3435363738"
            "393a434445464748494a535455565758595a636465666768696a737475767778797a838485868788898a92939495969798999aa2a3a4a5"
            "a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae1e2e3e4e5e6e7e8e9eaf1f2f3f4f5f6f7f8f9fa",
        )
        + _table(
            0x11, "00020102040403040705040400010277",
            "000102031104052131061241510761711322328108144291a1b1c109233352f0156272d10a162434e125f11718191a262728292a353637"
            "38393a434445464748494a535455565758595a636465666768696a737475767778797a82838485868788898a92939495969798999aa2a3"
            "a4a5a6a7a8a9aab2b3b4b5b6b7b8b9bac2c3c4c5c6c7c8c9cad2d3d4d5d6d7d8d9dae2e3e4e5e6e7e8e9eaf2f3f4f5f6f7f8f9fa",
        )
    )  # fmt: skip
    return b"\xff\xc4" + (len(content) + 2).to_bytes(2, "big") + content


STANDARD_TABLES = _standard_tables()


def complete_picture(packet: bytes) -> bytes | None:
    """Return a packet as a whole JPEG file: with the standard's Huffman tables, if it has none, and an end marker.

    Args:
        packet: contents of the packet.

    Returns:
        The file; None if the packet is no JPEG file with the colors that one has by default: red, green and blue, or
        samples of the limited range.
    """
    if not packet.startswith(_START):
        return None
    at, has_tables, is_standard = len(_START), False, False
    while at + 4 <= len(packet) and packet[at] == _MARKER:
        kind = packet[at + 1]
        if kind == _MARKER:  # a fill byte
            at += 1
            continue
        if kind == _SCAN:
            tables = b"" if has_tables else STANDARD_TABLES
            end = b"" if _END in packet[-_TAIL:] else _END
            return packet[:2] + tables + packet[2:] + end if is_standard else None
        size = int.from_bytes(packet[at + 2 : at + 4], "big")
        segment = packet[at + 4 : at + 2 + size]
        has_tables |= kind == _TABLES
        if kind in _FRAMES:
            is_standard = segment[6::3][:3] != b"RGB"
        if (kind == _COMMENT and segment.startswith(_LIMITED)) or (kind == _ADOBE and segment[11:12] == b"\0"):
            return None
        at += 2 + size
    return None


@dataclass(frozen=True)
class JpegPicture:
    """Frame of Motion JPEG that is decoded when its pixels are written.

    Attributes:
        pts: number of its packet.
        height, width: its size.
        content: the JPEG file.
        is_corrupt: False: damage shows when the pixels are written.
    """

    pts: int
    height: int
    width: int
    content: bytes
    is_corrupt: bool = False

    def write(self, channels: str, out: npt.NDArray[np.uint8]) -> None:
        """Decode the picture.

        Args:
            channels: RGB, BGR or YCbCr.
            out: uint8 ``(height, width, 3)``.

        Raises:
            DataError: the picture is damaged.
        """
        status = _native.jpeg.jpeg_decode_into(self.content, out, None, channels)  # type: ignore[arg-type]
        if status != "ok":
            raise DataError(f"packet {self.pts} holds a JPEG picture that is {status}")


class MotionJpegContext:
    """Codec context that decodes whole JPEG pictures with the package's decoder, and other packets with FFmpeg's.

    Args:
        other: PyAV's context.
        index: the frame index of the file.
    """

    def __init__(self, other: Any, index: FrameIndex) -> None:
        self._other, self._size = other, index.size
        self._is_of_jpeg = index.color[0] in _MATRICES

    @property
    def is_open(self) -> bool:
        """Return whether FFmpeg's decoder has begun."""
        return bool(self._other.is_open)

    def flush_buffers(self) -> None:
        """Begin with another packet."""
        self._other.flush_buffers()

    def decode(self, packet: Any) -> Sequence[Any]:
        """Decode a packet, or drain the decoder. Return the pictures that come out."""
        if packet is None:
            return self._other.decode(None) if self.is_open else ()
        picture = self._picture(bytes(packet), packet.pts) if self._is_of_jpeg else None
        return self._other.decode(packet) if picture is None else (picture,)

    def _picture(self, packet: bytes, number: int) -> JpegPicture | None:
        """Return the picture of a packet; None if the packet is left to FFmpeg."""
        content = complete_picture(packet)
        if content is None:
            return None
        info = _native.jpeg.jpeg_info(content)
        if info["support"] != "native" or (info["height"], info["width"]) != self._size:
            return None
        return JpegPicture(number, *self._size, content)
