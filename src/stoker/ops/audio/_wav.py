# SPDX-License-Identifier: Apache-2.0
"""WAV files in plain NumPy: the definition of their native conversion, and files for tests."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract.samples import Rows

_FLOAT, _EXTENSIBLE = 3, 0xFFFE


def write_wav(x: Any, rate: int, *, bits: int = 16, extensible: bool = False) -> Any:
    """Return the bytes of a file with the samples ``(frames, channels)``: integers of ``bits``, or floats of x's type.

    Integers keep their low ``bits`` bits; 8-bit files are unsigned.
    """
    samples = np.asarray(x)
    if samples.dtype.kind == "f":
        tag, bits, data = _FLOAT, 8 * samples.itemsize, samples.tobytes()
    else:
        tag, wide = 1, samples.astype("<i4")
        data = (
            ((wide + 128) if bits == 8 else wide).astype("<i4").view(np.uint8).reshape(-1, 4)[:, : bits // 8].tobytes()
        )
    channels = samples.shape[1]
    block = channels * bits // 8
    header = struct.pack(
        "<HHIIHH", _EXTENSIBLE if extensible else tag, channels, rate, rate * block % 2**32, block, bits
    )
    if extensible:
        guid = b"\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"
        header += struct.pack("<HHIH", 22, bits, 0, tag) + guid
    chunks = b"fmt " + struct.pack("<I", len(header)) + header + b"data" + struct.pack("<I", len(data)) + data
    return np.frombuffer(b"RIFF" + struct.pack("<I", 4 + len(chunks)) + b"WAVE" + chunks, np.uint8)


def read_wav(data: Any) -> tuple[Any, int]:
    """Return the numbers of a file, ``(frames, channels)``, and its rate: integers of 32 bits at full scale, or
    floats.
    """
    content, at, header = bytes(data), 12, b""
    while True:
        name, size = content[at : at + 4], int.from_bytes(content[at + 4 : at + 8], "little")
        body = content[at + 8 : at + 8 + size]
        if name == b"data":
            break
        header = body if name == b"fmt " else header
        at += 8 + size + size % 2
    tag, channels, rate, _, _, bits = struct.unpack("<HHIIHH", header[:16])
    tag = int.from_bytes(header[24:26], "little") if tag == _EXTENSIBLE else tag
    if tag == _FLOAT:
        return np.frombuffer(body, f"<f{bits // 8}").reshape(-1, channels), rate
    octets = np.frombuffer(body, np.uint8).reshape(-1, bits // 8)
    wide = np.zeros((len(octets), 4), np.uint8)
    wide[:, 4 - bits // 8 :] = octets ^ 0x80 if bits == 8 else octets
    return wide.view("<i4").reshape(-1, channels), rate


def wav_files(case: Mapping[str, Any]) -> Rows:
    """Return files of different encodings, lengths, channels and rates."""
    rng = np.random.default_rng(4)
    floats = rng.uniform(-1.2, 1.2, (60, 3)).astype(np.float32)
    return [
        (write_wav(rng.integers(-(1 << 15), 1 << 15, (50, 2)), 16000),),
        (write_wav(rng.integers(-(1 << 23), 1 << 23, (41, 1)), 44100, bits=24, extensible=True),),
        (write_wav(rng.integers(-128, 128, (33, 2)), 8000, bits=8),),
        (write_wav(floats, 22050),),
        (write_wav(rng.integers(-(1 << 31), 1 << 31, (70, 2)), 48000, bits=32),),
    ]
