# SPDX-License-Identifier: Apache-2.0
"""Frames of MPEG audio files (MP3): the check that they are whole, and the length of files that do not state it.

libsndfile (mpg123) skips bytes between frames and silences frames that it cannot decode, and reports neither.
`checked` refuses such files.

Without a stated length, mpg123 estimates one from the file's size and its first frame, and never reads beyond the
estimate: a file of variable bit rate that begins loud loses its end. `checked` counts the frames and returns a file
that states their number, in the first frame that LAME, FFmpeg and libsndfile write for this purpose (Xing/Info).

Sources: frame headers, ISO/IEC 11172-3 2.4.1.3 and 13818-3; the first frame,
http://gabriel.mp3-tech.org/mp3infotag.html.
"""

from __future__ import annotations

from typing import NamedTuple

from ...contract.errors import DataError
from ...native import _native
from ...video.container_ends import after_id3

_RATES = {3: (44100, 48000, 32000), 2: (22050, 24000, 16000), 0: (11025, 12000, 8000)}  # Hz, by version
_KBITS = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)  # layer III, version 1
_LOW_KBITS = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)  # layer III, versions 2 and 2.5
_VERSION_1, _LAYER_3, _MONO = 3, 1, 3
_NO_CHECKSUM = 1
_LENGTH_BYTES = 36  # Info, flags, number of frames; name, settings, samples to drop
_STATING = (b"Xing", b"Info")  # names of the first frame's contents
_HAS_COUNT = 1  # flag of the stated length
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


def _frames(data: bytes, start: int, most: int) -> tuple[int, int]:
    """Return the number of frames from a byte on, and the byte after them.

    Raises:
        DataError: a frame is cut off or damaged.
    """
    count, end, error = _native.mpeg_frames(data, start, most)
    if error:
        raise DataError(error)
    return count, end


def _no_frame(data: bytes, at: int, first: _Frame) -> DataError:
    """Return the error for bytes between frames."""
    return DataError(
        f"expected a frame of MPEG audio (layer III, {first.rate} Hz, {'one channel' if first.is_mono else 'stereo'}) "
        f"or a tag at byte {at}, got {data[at : at + 4]!r}: the file is damaged"
    )


def _stated_frames(data: bytes, tag: int) -> int | None:
    """Return the number of frames that a file states, if it does. ``tag``: the byte after the side information."""
    if data[tag : tag + 4] not in _STATING or len(data) < tag + 12 or not data[tag + 7] & _HAS_COUNT:
        return None
    return int.from_bytes(data[tag + 8 : tag + 12], "big")


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


def checked(data: bytes) -> bytes:
    """Return a file that states its length: an MP3 file that does not gets a first frame that does, all others are
    returned as they are.

    The samples are those of the file without this frame, to float32's rounding: a silent frame takes the place of the
    samples that decoders drop.

    Raises:
        DataError: an MP3 file has other bytes between its frames, another number of frames than it states, a frame
            that is cut off, or one whose side information is impossible or does not match its checksum.
    """
    start = after_id3(data)
    first = _frame(data, start)
    if first is None:
        return data
    tag = start + 4 + first.side_bytes
    stated = _stated_frames(data, tag)
    if stated is not None:
        _check_stated(data, start + first.size, stated, first)
        return data
    if data[tag : tag + 4] in _STATING:
        start += first.size
    count, end = _frames(data, start, -1)
    if not count:
        raise DataError("expected frames of MPEG audio after the one that states facts, got none: the file is cut off")
    if not _is_tag(data[end:]):
        raise _no_frame(data, end, first)
    return _with_length(data[start:], count, first)


def _check_stated(data: bytes, start: int, stated: int, first: _Frame) -> None:
    """Check a file that states its number of frames. Bytes after them that are no frame are left alone."""
    count, end = _frames(data, start, stated)
    if count < stated:
        if end < len(data) and not _is_tag(data[end:]):
            raise _no_frame(data, end, first)
        raise DataError(f"expected {stated} frames of MPEG audio, as the file states, got {count}: the file is cut off")
    more = _frame(data, end)
    if more is not None and more.rate == first.rate:
        raise DataError(f"expected {stated} frames of MPEG audio, as the file states, got more, one at byte {end}")


def _with_length(frames: bytes, count: int, first: _Frame) -> bytes:
    """Return frames after one that states their number."""
    header, size = _small_header(frames[:4], first)
    dropped = (first.samples - _DECODER_DELAY) << 12 | _DECODER_DELAY
    stated = header + bytes(first.side_bytes) + b"Info" + _HAS_COUNT.to_bytes(4, "big") + (count + 1).to_bytes(4, "big")
    stated += b"LAME".ljust(9, b"\0") + bytes(12) + dropped.to_bytes(3, "big")
    return stated.ljust(size, b"\0") + header.ljust(size, b"\0") + frames
