# SPDX-License-Identifier: Apache-2.0
"""Length of MPEG audio files (MP3) that do not state it.

libsndfile (mpg123) estimates the length of such a file from its size and its first frame, and never reads beyond the
estimate: a file of variable bit rate that begins loud loses its end. `with_length` counts the frames and returns a
file that states their number, in the first frame that LAME, FFmpeg and libsndfile write for this purpose (Xing/Info).

Sources: frame headers, ISO/IEC 11172-3 2.4.1.3 and 13818-3; the first frame,
http://gabriel.mp3-tech.org/mp3infotag.html.
"""

from __future__ import annotations

from typing import NamedTuple

from ...contract.errors import DataError
from ...video.container_ends import after_id3

_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}  # Hz, by version
_KBITS = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)  # layer III, version 1
_LOW_KBITS = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)  # layer III, versions 2 and 2.5
_VERSION_1, _LAYER_3, _MONO = 3, 1, 3
_NO_CHECKSUM = 1
_LENGTH_BYTES = 36  # Info, flags, number of frames; name, settings, samples to drop
_DECODER_DELAY = 529  # samples that decoders drop at both ends when a file states its length


class _Frame(NamedTuple):
    version: int
    rate: int  # Hz
    size: int  # bytes
    is_mono: bool

    @property
    def samples(self) -> int:
        """Samples per channel."""
        return 1152 if self.version == _VERSION_1 else 576

    @property
    def side_bytes(self) -> int:
        """Bytes between the header and the data."""
        if self.version == _VERSION_1:
            return 17 if self.is_mono else 32
        return 9 if self.is_mono else 17


def _frame(data: bytes, at: int) -> _Frame | None:
    """Return the frame of layer III that begins at a byte, or None."""
    if at + 4 > len(data) or data[at] != 0xFF or data[at + 1] & 0xE0 != 0xE0:
        return None
    version, layer = data[at + 1] >> 3 & 3, data[at + 1] >> 1 & 3
    kbits, rate = data[at + 2] >> 4, data[at + 2] >> 2 & 3
    if version not in _RATES or layer != _LAYER_3 or kbits in (0, 15) or rate == 3:
        return None
    table, unit = (_KBITS, 144) if version == _VERSION_1 else (_LOW_KBITS, 72)
    hertz = _RATES[version][rate]
    size = unit * 1000 * table[kbits - 1] // hertz + (data[at + 2] >> 1 & 1)
    return _Frame(version, hertz, size, data[at + 3] >> 6 == _MONO)


def _is_tag(rest: bytes) -> bool:
    """Return whether the bytes after the last frame are a tag or padding."""
    return rest[:3] == b"TAG" or rest[:8] in (b"APETAGEX", b"LYRICSBE") or not rest.strip(b"\0")


def _count_frames(data: bytes, start: int, first: _Frame) -> int:
    """Return the number of frames from a byte on.

    Raises:
        DataError: the file is cut off, or has other bytes between its frames.
    """
    at, count = start, 0
    while at < len(data):
        frame = _frame(data, at)
        if frame is None or frame.rate != first.rate:
            if _is_tag(data[at:]):
                break
            raise DataError(
                f"expected a frame of MPEG audio (layer III, {first.rate} Hz) or a tag at byte {at}, got "
                f"{data[at : at + 4]!r}: the file is damaged"
            )
        if at + frame.size > len(data):
            raise DataError(
                f"expected {frame.size} bytes of a frame at byte {at}, got {len(data) - at}: the file is cut off"
            )
        at += frame.size
        count += 1
    return count


def _small_header(header: bytes, like: _Frame) -> tuple[bytes, int]:
    """Return the header of a frame of the same kind, in the smallest bit rate that has room for the length, and the
    bytes of the frame.
    """
    sizes = []
    for kbits in range(1, 15):
        small = bytes((0xFF, header[1] | _NO_CHECKSUM, kbits << 4 | header[2] & 0x0C, header[3]))
        frame = _frame(small, 0)
        assert frame is not None
        sizes.append((small, frame.size))
    return next(found for found in sizes if found[1] >= 4 + like.side_bytes + _LENGTH_BYTES)


def with_length(data: bytes) -> bytes:
    """Return a file that states its length: an MP3 file that does not gets a first frame that does, all others are
    returned as they are.

    The samples are those of the file without this frame, to float32's rounding: a silent frame takes the place of the
    samples that decoders drop.

    Raises:
        DataError: an MP3 file that does not state its length is cut off, or damaged between frames.
    """
    start = after_id3(data)
    first = _frame(data, start)
    if first is None:
        return data
    tag = start + 4 + first.side_bytes
    if data[tag : tag + 4] in (b"Xing", b"Info"):
        return data
    count = _count_frames(data, start, first)
    header, size = _small_header(data[start : start + 4], first)
    dropped = (first.samples - _DECODER_DELAY) << 12 | _DECODER_DELAY
    stated = header + bytes(first.side_bytes) + b"Info" + (1).to_bytes(4, "big") + (count + 1).to_bytes(4, "big")
    stated += b"LAME".ljust(9, b"\0") + bytes(12) + dropped.to_bytes(3, "big")
    return stated.ljust(size, b"\0") + header.ljust(size, b"\0") + data[start:]
