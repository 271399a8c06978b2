# SPDX-License-Identifier: Apache-2.0
"""PNG files of every kind of colour, bit depth, filter and interlacing, which no common library writes all of."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

SIGNATURE = b"\x89PNG\r\n\x1a\n"
SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # by kind of colour
KINDS = [
    *((0, bits) for bits in (1, 2, 4, 8, 16)), *((3, bits) for bits in (1, 2, 4, 8)),
    *((colours, bits) for colours in (2, 4, 6) for bits in (8, 16)),
]  # fmt: skip
_PASSES = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(
    pixels: Array, colours: int, bits: int, *, interlaced: bool = False, filters: Sequence[int] = range(5),
    before: bytes = b"", after: bytes = b"", level: int = 6, data_bytes: int = 1 << 30,
) -> bytes:  # fmt: skip
    """Return a file of samples ``(H, W, S)``; rows take the filters in turn.

    Args:
        before: chunks before the image data.
        after: chunks after the image data.
        data_bytes: bytes of a chunk of image data.
    """
    height, width, _ = pixels.shape
    passes = _PASSES if interlaced else [(0, 0, 1, 1)]
    parts = [pixels[y::down, x::across] for x, y, across, down in passes]
    rows = b"".join(_filtered(part, bits, filters) for part in parts if part.size)
    packed = zlib.compress(rows, level)
    header = struct.pack(">IIBBBBB", width, height, bits, colours, 0, 0, int(interlaced))
    body = b"".join(chunk(b"IDAT", packed[at : at + data_bytes]) for at in range(0, len(packed), data_bytes))
    return SIGNATURE + chunk(b"IHDR", header) + before + body + after + chunk(b"IEND", b"")


def _filtered(pixels: Array, bits: int, filters: Sequence[int]) -> bytes:
    height, _, samples = pixels.shape
    if bits == 16:
        rows = pixels.astype(">u2").reshape(height, -1).view(np.uint8)
    elif bits == 8:
        rows = pixels.astype(np.uint8).reshape(height, -1)
    else:
        flat = pixels.astype(np.uint8).reshape(height, -1)
        spread = (flat[:, :, None] >> np.arange(bits - 1, -1, -1)) & 1
        rows = np.packbits(spread.reshape(height, -1), axis=1)
    step = max(1, samples * bits // 8)
    out = []
    above = np.zeros(rows.shape[1], np.int32)
    for number, row in enumerate(rows.astype(np.int32)):
        kind = filters[number % len(filters)]
        left, corner = (np.concatenate([np.zeros(step, np.int32), of])[: len(of)] for of in (row, above))
        guess = {0: 0 * row, 1: left, 2: above, 3: (left + above) // 2, 4: _paeth(left, above, corner)}[kind]
        out.append(bytes([kind]) + ((row - guess) & 255).astype(np.uint8).tobytes())
        above = row
    return b"".join(out)


def _paeth(left: Array, above: Array, corner: Array) -> Array:
    from_left, from_above = abs(above - corner), abs(left - corner)
    from_corner = abs(left + above - 2 * corner)
    nearer = np.where(from_above <= from_corner, above, corner)
    return np.where((from_left <= from_above) & (from_left <= from_corner), left, nearer)


def samples(colours: int, bits: int, height: int, width: int, seed: int = 0) -> Array:
    """Return samples that compress a little, so that files have matches and literals."""
    random = np.random.default_rng([seed, colours, bits, height, width])
    shape = (height, width, SAMPLES[colours])
    steps = random.integers(-2, 3, shape).cumsum(1) * (1 << max(0, bits - 6))
    return np.where(random.random(shape) < 0.1, random.integers(0, 1 << bits, shape), steps % (1 << bits))


def palette(entries: int, alphas: int = 0) -> bytes:
    random = np.random.default_rng([entries, alphas])
    colours = chunk(b"PLTE", random.integers(0, 256, 3 * entries, np.uint8).tobytes())
    return colours + (chunk(b"tRNS", random.integers(11, 256, alphas, np.uint8).tobytes()) if alphas else b"")
