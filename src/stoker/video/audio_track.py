# SPDX-License-Identifier: Apache-2.0
"""Audio tracks of containers that libsndfile does not read: MP4 and M4A, ADTS (AAC), Matroska and WebM, ASF (WMA),
WavPack.

A file's first bytes select FFmpeg's demuxer, so that no other one, such as that of playlists, is ever tried. FFmpeg
returns what is left of a file that is cut off, so `container_ends` compares each file with its own statements.

Samples that the container excludes are removed. FFmpeg drops those at the beginning (priming) and, in Matroska, those
at the end. In MP4 files the end follows from the durations of the packets and from the edit list.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..contract.errors import DataError
from .container_ends import ASF, EBML, adts_bytes, after_id3, movie_tick, require_whole
from .pyav import DECODER_OPTIONS, FileErrors, name_of, open_container

_MP4_BOXES = (b"ftyp", b"moov", b"mdat", b"moof", b"free", b"skip", b"wide", b"pnot", b"styp")
_WHOLE_PACKETS = ("aac", "alac", "flac")  # decoders that return the samples of each packet with it


class AudioTrack(NamedTuple):
    """Facts about the samples of a file."""

    frames: int
    channels: int
    rate: int  # Hz


def audio_container(data: npt.NDArray[np.uint8] | bytes) -> str | None:
    """Return the name of FFmpeg's demuxer for a file, or None if the file has none of this module's formats."""
    start = bytes(data[:16])
    if start[4:8] in _MP4_BOXES:
        return "mov"
    if start[:4] == EBML:
        return "matroska"
    if start == ASF:
        return "asf"
    if start[:4] == b"wvpk":
        return "wv"
    at = after_id3(data)
    return "aac" if adts_bytes(bytes(data[at : at + 7])) else None


def audio_track(data: bytes, form: str) -> AudioTrack:
    """Return the facts about a file's samples.

    Files whose packets have exact durations are not decoded beyond their first samples; of all others the samples are
    counted.

    Args:
        data: the file.
        form: the result of :func:`audio_container`.

    Raises:
        DataError: the file is damaged, or has no audio.
        UnsupportedError: PyAV is not installed.
    """
    require_whole(data, form)
    spans: list[tuple[int, int]] = []
    found, is_timed = AudioTrack(0, 0, 0), False
    with FileErrors(data), _opened(data, form) as (container, stream):
        for packet in container.demux(stream):
            if packet.size and packet.pts is not None:
                spans.append((packet.pts, packet.duration or 0))
            if not is_timed:
                for frame in stream.codec_context.decode(packet):
                    found = _counted(found, frame)
                is_timed = found.rate > 0 and _has_exact_times(stream, form, found.rate)
        if not found.rate:
            raise DataError(f"expected samples in {name_of(data)}, got none")
        frames = found.frames
        if form == "mov" or is_timed:
            edit = stream.duration or 0 if form == "mov" else 0
            shown = _shown(spans, edit, movie_tick(data) / stream.time_base, data)
            shown = math.ceil(shown * stream.time_base * found.rate)
            frames = shown if is_timed else min(shown, frames)
        if form == "wv" and frames < (stream.duration or 0):
            raise DataError(f"expected {stream.duration} frames in {name_of(data)}, as it states, got {frames}")
    return found._replace(frames=frames)


def read_audio(data: bytes, form: str, first: int, count: int) -> Iterator[npt.NDArray[Any]]:
    """Return the frames from one on, in blocks ``(frames, channels)``: float32, or int32 at full scale.

    Args:
        data: the file.
        form: the result of :func:`audio_container`.
        first: the first frame.
        count: number of frames.

    Raises:
        DataError: the file is damaged, or has fewer frames.
        UnsupportedError: PyAV is not installed.
    """
    found, end = AudioTrack(0, 0, 0), first + count
    with FileErrors(data), _opened(data, form) as (container, stream):
        for packet in container.demux(stream):
            for frame in stream.codec_context.decode(packet):
                at, found = found.frames, _counted(found, frame)
                if found.frames > first and at < end:
                    yield samples_of(frame)[max(first - at, 0) : end - at]
            if found.frames >= end:
                return
    raise DataError(f"expected {end} frames in {name_of(data)}, got {found.frames}")


@contextlib.contextmanager
def _opened(data: bytes, form: str) -> Iterator[tuple[Any, Any]]:
    """Open a file. Return the container and its best audio stream."""
    with open_container(data, form) as container:
        if not container.streams.audio:
            raise DataError(f"expected an audio stream in {name_of(data)}, got none")
        stream = container.streams.best("audio")
        stream.codec_context.options = DECODER_OPTIONS
        stream.codec_context.thread_count = 1  # errors come with their packets, and rows are decoded in parallel
        yield container, stream


def _counted(before: AudioTrack, frame: Any) -> AudioTrack:
    """Return the facts after one more frame of the decoder."""
    channels, rate = len(frame.layout.channels), frame.sample_rate
    if before.rate and (channels, rate) != before[1:]:
        raise DataError(
            f"expected {before.channels} channels at {before.rate} Hz in the whole file, got {channels} at {rate} Hz "
            f"from frame {before.frames} on"
        )
    return AudioTrack(before.frames + frame.samples, channels, rate)


def _has_exact_times(stream: Any, form: str, rate: int) -> bool:
    """Return whether the durations of the packets are whole numbers of samples, and the decoder returns as many."""
    whole = form == "aac" or (form == "mov" and (stream.time_base * rate).denominator == 1)
    return whole and stream.codec_context.codec.name in _WHOLE_PACKETS


def _shown(spans: list[tuple[int, int]], duration: int, tick: Fraction, data: bytes) -> int:
    """Return the time from the first shown sample to the last one.

    Args:
        spans: beginning and duration of each packet.
        duration: duration of the edit list; 0: there is none.
        tick: the unit of the edit list, which rounds its duration.
    """
    for (begin, length), (after, _) in itertools.pairwise(spans):
        if begin + length != after:
            raise DataError(
                f"expected packets without gaps in {name_of(data)}, got one that begins at {after} after one that ends "
                f"at {begin + length}. Files with several edits are not supported"
            )
    if not spans:
        raise DataError(f"expected packets of audio in {name_of(data)}, got none")
    first, end = max(spans[0][0], 0), sum(spans[-1])
    is_cut = duration > 0 and first + duration <= end - tick
    return max(first + duration if is_cut else end, first) - first


def samples_of(frame: Any) -> Any:
    """Return the samples of a decoder's frame, ``(frames, channels)``: float32, or int32 at full scale."""
    x = frame.to_ndarray()
    x = x.T if frame.format.is_planar else x.reshape(frame.samples, -1)
    if x.dtype.kind == "f":
        return x.astype(np.float32, copy=False)
    if x.dtype == np.uint8:
        return (x.astype(np.int32) - 128) << 24
    bits = 8 * x.itemsize
    return (x >> (bits - 32)).astype(np.int32) if bits > 32 else x.astype(np.int32) << (32 - bits)
