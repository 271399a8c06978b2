# SPDX-License-Identifier: Apache-2.0
"""Audio of a span of a video's time, on the clock of its frames."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..contract.errors import DataError
from .audio_track import samples_of
from .pyav import DECODER_OPTIONS, FileErrors, Source, name_of, open_container

LEAD_S = 0.5  # decoded before a span: decoders of lossy codecs need the samples before
MAX_SAMPLES = 1 << 30  # of a span, of all channels
MAX_RATE = 1 << 20


def audio_rate(source: Source) -> int:
    """Return the sampling rate of a video's audio track in Hz.

    Raises:
        DataError: the file has no audio track, or none with a rate.
        OSError: the file cannot be read.
    """
    with open_container(source) as container, FileErrors(source):
        return int(_opened(container, source).codec_context.sample_rate)


def read_span(source: Source, begin: float, end: float, rate: int) -> npt.NDArray[Any]:
    """Return the samples of a span ``(samples, channels)``, float32 or int32 at full scale.

    The sample at time ``t`` has the number ``round(t * rate)``, so that consecutive spans have all samples, each once.
    Times before and after the track are silent.

    Args:
        source: the path of a file, or its contents.
        begin: first second, on the clock of the file.
        end: second at which the span ends.
        rate: the track's sampling rate.

    Raises:
        DataError: the track is damaged, or changes its form.
        OSError: the file cannot be read.
    """
    first, last = round(begin * rate), round(end * rate)
    with open_container(source) as container, FileErrors(source):
        stream = _opened(container, source)
        channels = len(stream.codec_context.layout.channels)
        if not 0 < channels * max(last - first, 1) <= MAX_SAMPLES:
            raise DataError(
                f"expected a span of at most {MAX_SAMPLES} samples, got {last - first} of {channels} channels"
            )
        slack = float(stream.time_base) * rate + 1  # by which containers round times
        if begin > LEAD_S:
            container.seek(int((begin - LEAD_S) / stream.time_base), stream=stream, backward=True)
        span: npt.NDArray[Any] | None = None
        at = 0
        for packet in container.demux(stream):
            for frame in stream.codec_context.decode(packet):
                if (len(frame.layout.channels), frame.sample_rate) != (channels, rate):
                    raise DataError(f"expected {channels} channels at {rate} Hz in all of {name_of(source)}")
                stated = at if frame.pts is None else round(frame.pts * stream.time_base * rate)
                samples = samples_of(frame)
                if span is None:
                    span, at = np.zeros((last - first, channels), samples.dtype), stated
                at = at if abs(stated - at) <= slack else stated
                low, high = max(at, first), min(at + len(samples), last)
                if low < high:
                    span[low - first : high - first] = samples[low - at : high - at]
                at += len(samples)
            if span is not None and at >= last:
                break
    return np.zeros((last - first, channels), np.float32) if span is None else span


def _opened(container: Any, source: Source) -> Any:
    """Return the container's best audio stream."""
    if not container.streams.audio:
        raise DataError(f"expected an audio track in {name_of(source)} for `with_audio`, got none")
    stream = container.streams.best("audio")
    if stream.codec_context is None or not 0 < stream.codec_context.sample_rate <= MAX_RATE:
        raise DataError(f"expected an audio track that FFmpeg decodes in {name_of(source)}")
    stream.codec_context.options = DECODER_OPTIONS
    stream.codec_context.thread_count = 1  # rows are decoded in parallel
    return stream


class TrackPart(NamedTuple):
    """Part of an audio track.

    Attributes:
        samples: float32 ``(samples, channels)``.
        rate: sampling rate in Hz.
    """

    samples: npt.NDArray[np.float32]
    rate: int


def read_track(source: Source, begin: float, end: float) -> TrackPart | None:
    """Return the samples of a video's audio track in a span of time; None if there is no track.

    Args:
        source: the path of a file, or its contents.
        begin: first second, on the clock of the file.
        end: second at which the span ends; infinity: at the end of the track.

    Raises:
        DataError: the track is damaged, or changes its form.
        OSError: the file cannot be read.
    """
    with open_container(source) as container, FileErrors(source):
        if not container.streams.audio:
            return None
        stream = _opened(container, source)
        rate = int(stream.codec_context.sample_rate)
        ends = 0
        for packet in container.demux(stream):
            if packet.pts is not None:
                ends = max(ends, packet.pts + (packet.duration or 0))
        last = min(end, float(ends * stream.time_base))
    samples = read_span(source, min(max(begin, 0.0), last), last, rate)
    if samples.dtype != np.float32:
        samples = (samples * np.float32(2.0**-31)).astype(np.float32)
    return TrackPart(samples, rate)
