# SPDX-License-Identifier: Apache-2.0
"""Small files that cause much work or claim much memory."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

from PIL import Image

_SCANS = 6  # of a gray progressive file by Pillow


def claiming_jpeg(height: int, width: int) -> bytes:
    """Return a file of 32 x 32 pixels whose header claims this size."""
    data = bytearray(_saved(Image.new("RGB", (32, 32)), "JPEG"))
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", height, width)
    return bytes(data)


def claiming_png(height: int, width: int) -> bytes:
    """Return a file whose data end in the first row of the size that its header claims."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(bytes(100)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + body + chunk(b"IEND", b"")


def claiming_gif(height: int, width: int) -> bytes:
    """Return a file with a screen of this size and one picture of one pixel."""
    data = bytearray(_saved(Image.new("P", (1, 1)), "GIF"))
    data[6:10] = struct.pack("<HH", width, height)
    return bytes(data)


def with_scans(count: int, side: int) -> bytes:
    """Return a progressive file of one colour with ``count`` scans: its last one is repeated."""
    data = _saved(Image.new("L", (side, side), 99), "JPEG", progressive=True)
    first = data.rindex(b"\xff\xc4")  # the scan's table
    last = data[first:-2]
    return data[:-2] + last * (count - _SCANS) + data[-2:]


def _saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()
