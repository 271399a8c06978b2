# SPDX-License-Identifier: Apache-2.0
"""A TrueType font with a single character, so that tests do not depend on the fonts of a system."""

from __future__ import annotations

import struct
from pathlib import Path

_EM = 1000


def write_font(path: Path, character: str) -> None:
    """Write a font whose only character, of the basic plane, is a filled triangle."""
    code = ord(character)
    triangle = struct.pack(">hhhhhHH", 1, 0, 0, 900, 800, 2, 0) + bytes([1, 1, 1])
    triangle += struct.pack(">hhh", 0, 450, 450) + struct.pack(">hhh", 0, 800, -800)
    triangle += bytes(-len(triangle) % 4)
    segments = struct.pack(
        ">HHHHHHHHHHHHHH", 4, 32, 0, 4, 4, 1, 0, code, 0xFFFF, 0, code, 0xFFFF, (1 - code) % 65536, 1
    )
    cmap = struct.pack(">HHHHI", 0, 1, 3, 1, 12) + segments + struct.pack(">HH", 0, 0)
    tables = {
        b"cmap": cmap,
        b"glyf": triangle,  # glyph 0, for characters without a glyph, is empty
        b"head": struct.pack(
            ">IIIIHHqqhhhhHHhhh", 0x10000, 0x10000, 0, 0x5F0F3CF5, 0, _EM, 0, 0, 0, 0, 900, 800, 0, 8, 2, 1, 0
        ),
        b"hhea": struct.pack(">IhhhHhhhhhhhhhhhH", 0x10000, 800, -200, 0, _EM, 0, 0, 900, 1, 0, 0, 0, 0, 0, 0, 0, 2),
        b"hmtx": struct.pack(">HhHh", _EM, 0, _EM, 0),
        b"loca": struct.pack(">III", 0, 0, len(triangle)),
        b"maxp": struct.pack(">IH", 0x10000, 2) + struct.pack(">13H", 3, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0),
    }
    at = 12 + 16 * len(tables)
    directory, content = struct.pack(">IHHHH", 0x10000, len(tables), 64, 2, 16 * len(tables) - 64), b""
    for tag, data in tables.items():
        directory += struct.pack(">4sIII", tag, 0, at + len(content), len(data))
        content += data + bytes(-len(data) % 4)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(directory + content)
