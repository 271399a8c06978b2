# SPDX-License-Identifier: Apache-2.0
"""Writer of GIF files of kinds that Pillow does not write."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt
from lzw_writer import lzw


def gif(
    numbers: npt.NDArray[Any], palette: bytes = b"", *, screen: tuple[int, int] | None = None,
    at: tuple[int, int] = (0, 0), local: bytes = b"", interlaced: bool = False, transparent: int | None = None,
    background: int = 0, bits: int = 8, clears: bool = True, block: int = 255, before: bytes = b"", after: bytes = b";",
    codes: bytes | None = None,
) -> bytes:  # fmt: skip
    """Return a file of one frame.

    Args:
        numbers: of the colours, HW.
        palette: of the file: red, green and blue of 2, 4, ... 256 colours.
        screen: height and width; those of the frame by default.
        at: row and column of the frame on the screen.
        local: palette of the frame.
        bits: of a number.
        clears: whether a full table is cleared. Otherwise it stays as it is.
        block: bytes of a block of codes.
        before: blocks before the frame.
        after: bytes after the frame.
        codes: other codes than those of the numbers.
    """
    height, width = numbers.shape
    rows, columns = screen or (height, width)
    out = b"GIF89a" + struct.pack("<HHBBB", columns, rows, _flags(palette), background, 0) + palette + before
    if transparent is not None:
        out += extension(0xF9, struct.pack("<BHB", 1, 0, transparent))
    flags = _flags(local) | (0x40 if interlaced else 0)
    out += b"," + struct.pack("<HHHHB", at[1], at[0], width, height, flags) + local + bytes([bits])
    order = [y for first, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for y in range(first, height, step)]
    stored = numbers[order] if interlaced else numbers
    data = lzw(stored.astype(np.uint8).tobytes(), bits, clears=clears) if codes is None else codes
    return out + chain(data, block) + after


def extension(label: int, *blocks: bytes) -> bytes:
    return b"!" + bytes([label]) + b"".join(bytes([len(data)]) + data for data in blocks) + b"\0"


def chain(data: bytes, block: int = 255) -> bytes:
    """Return data as a chain of blocks."""
    parts = [data[i : i + block] for i in range(0, len(data), block)]
    return b"".join(bytes([len(part)]) + part for part in parts) + b"\0"


def _flags(palette: bytes) -> int:
    return 0x80 | (len(palette) // 3 - 1).bit_length() - 1 if palette else 0
