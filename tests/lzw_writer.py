# SPDX-License-Identifier: Apache-2.0
"""Compression by LZW, as GIF and TIFF store it."""

from __future__ import annotations

from collections.abc import Sequence

_MOST_BITS = 12


def lzw(data: bytes, bits: int = 8, *, tiff: bool = False, clears: bool = True) -> bytes:
    """Compress as the specification of GIF says, or TIFF 6.0, section 13.

    Args:
        bits: of a number.
        tiff: the high bits of a code come first, codes grow one code earlier, and the table is cleared two codes
            earlier, and with its last code.
        clears: whether a full table is cleared. Otherwise it stays as it is.
    """
    clear, most = 1 << bits, 4094 if tiff else 1 << _MOST_BITS
    codes: list[tuple[int, int]] = [(clear, bits + 1)]
    table: dict[bytes, int] = {}
    size, free = bits + 1, clear + 2
    string = b""
    for value in data:
        longer = string + bytes([value])
        if len(longer) == 1 or longer in table:
            string = longer
            continue
        codes.append((table.get(string, string[0]), size))
        string = bytes([value])
        full = free == most
        if not full:
            table[longer] = free
            free += 1
            size += free - (not tiff) == 1 << size
        if clears and free == most and (tiff or full):
            codes.append((clear, size))
            table, size, free = {}, bits + 1, clear + 2
    if string:
        codes.append((table.get(string, string[0]), size))
        size += free + tiff == 1 << size and size < _MOST_BITS
    codes.append((clear + 1, size))
    return packed(codes, high_first=tiff)


def packed(codes: Sequence[tuple[int, int]], *, high_first: bool = False) -> bytes:
    """Return codes of these sizes, the low bits first unless ``high_first``."""
    order = 1 if high_first else -1
    text = "".join(f"{code:0{size}b}"[::order] for code, size in codes)
    text += "0" * (-len(text) % 8)
    return int(text[::order], 2).to_bytes(len(text) // 8, "big" if high_first else "little")
