# SPDX-License-Identifier: Apache-2.0
"""Writer of TIFF files of kinds that Pillow does not write."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from lzw_writer import lzw

NONE, LZW, DEFLATE, OLD_DEFLATE, PACK_BITS = 1, 5, 8, 32946, 32773
GRAY, RGB, PALETTE = 1, 2, 3
_SHORT, _LONG = 3, 4


def tiff(
    pixels: npt.NDArray[Any], photometric: int, *, big: bool = False, compression: int = NONE, rows: int | None = None,
    predictor: int = 1, extra: Sequence[int] = (), tags: dict[int, tuple[int, Sequence[int]]] | None = None,
    tile: tuple[int, int] | None = None, planes: bool = False,
) -> bytes:  # fmt: skip
    """Return a file of strips, or of tiles.

    Args:
        pixels: HWC, uint8 or uint16.
        big: whether high bytes come first.
        rows: of a strip; the whole image by default.
        predictor: 2 stores the differences from the pixel before.
        extra: meaning of the samples after the colours.
        tags: more values, or others: type (3: 16 bits, 4: 32 bits) and numbers by tag.
        tile: height and width of the tiles.
        planes: whether each sample is in a plane of its own.
    """
    height, width, samples = pixels.shape
    rows = rows or height
    order = ">" if big else "<"
    down, across = tile or (rows, width)
    padding = [(0, -height % down if tile else 0), (0, -width % across), (0, 0)]
    whole = np.pad(pixels, padding, mode="edge")
    blocks = [
        whole[y : y + down, x : x + across, first:end]
        for first, end in ([(k, k + 1) for k in range(samples)] if planes else [(0, samples)])
        for y in range(0, height, down) for x in range(0, width, across)
    ]  # fmt: skip
    strips = [_compressed(_ordered(block, predictor, order), compression) for block in blocks]
    offsets, at = [], 8
    for strip in strips:
        offsets.append(at)
        at += len(strip)
    values: dict[int, tuple[int, Sequence[int]]] = {
        256: (_SHORT, [width]), 257: (_LONG, [height]), 258: (_SHORT, [pixels.itemsize * 8] * samples),
        259: (_SHORT, [compression]), 262: (_SHORT, [photometric]), 277: (_SHORT, [samples]),
    }  # fmt: skip
    sizes = [len(strip) for strip in strips]
    if tile:
        values |= {322: (_SHORT, [across]), 323: (_SHORT, [down]), 324: (_LONG, offsets), 325: (_LONG, sizes)}
    else:
        values |= {273: (_LONG, offsets), 278: (_SHORT, [rows]), 279: (_LONG, sizes)}
    if planes:
        values[284] = (_SHORT, [2])
    if predictor != 1:
        values[317] = (_SHORT, [predictor])
    if extra:
        values[338] = (_SHORT, extra)
    values |= tags or {}
    at += at % 2
    body = b"".join(strips).ljust(at - 8, b"\0")
    return (b"MM\0*" if big else b"II*\0") + struct.pack(order + "I", at) + body + _directory(values, at, order)


def _ordered(block: npt.NDArray[Any], predictor: int, order: str) -> bytes:
    """Return the bytes of a block of pixels."""
    stored = block.copy()
    if predictor == 2:
        stored[:, 1:] -= block[:, :-1]
    return stored.astype(stored.dtype.newbyteorder(order)).tobytes()


def _directory(values: dict[int, tuple[int, Sequence[int]]], at: int, order: str) -> bytes:
    end = at + 2 + 12 * len(values) + 4
    entries, after = b"", b""
    for tag, (kind, numbers) in sorted(values.items()):
        data = struct.pack(f"{order}{len(numbers)}{'H' if kind == _SHORT else 'I'}", *numbers)
        if len(data) > 4:
            place = struct.pack(order + "I", end + len(after))
            after += data
        else:
            place = data.ljust(4, b"\0")
        entries += struct.pack(order + "HHI", tag, kind, len(numbers)) + place
    return struct.pack(order + "H", len(values)) + entries + bytes(4) + after


def _compressed(data: bytes, compression: int) -> bytes:
    if compression == LZW:
        return lzw(data, tiff=True)
    if compression == PACK_BITS:
        return pack_bits(data)
    return zlib.compress(data) if compression in (DEFLATE, OLD_DEFLATE) else data


def pack_bits(data: bytes) -> bytes:
    """Compress as TIFF 6.0, section 9, says, with runs, literals and a byte without meaning."""
    out = bytearray(b"\x80")
    at = 0
    while at < len(data):
        run = 1
        while at + run < len(data) and run < 128 and data[at + run] == data[at]:
            run += 1
        if run > 1:
            out += bytes([257 - run, data[at]])
        else:
            while at + run < len(data) and run < 128 and data[at + run] != data[at + run - 1]:
                run += 1
            out += bytes([run - 1]) + data[at : at + run]
        at += run
    return bytes(out)


def grain(height: int, width: int, samples: int, dtype: Any = np.uint8) -> npt.NDArray[Any]:
    """Return pixels with runs, gradients and noise."""
    random = np.random.Generator(np.random.PCG64(height * width + samples))
    most = np.iinfo(dtype).max
    ramp = np.arange(width)[None, :, None] * (most // 64) + np.arange(height)[:, None, None] * (most // 96)
    noise = random.integers(0, most // 16, (height, width, samples)) * (random.random((height, width, 1)) < 0.3)
    return ((ramp + noise) % (most + 1)).astype(dtype)
