# SPDX-License-Identifier: Apache-2.0
"""Frames of a video's audio streams one by one, as their decoder returns them, with their times."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..contract.errors import DataError
from .audio_track import samples_of
from .clip_audio import LEAD_S, MAX_RATE
from .pyav import DECODER_OPTIONS, FileErrors, Source, name_of, open_container


class AudioFacts(NamedTuple):
    """Facts of an audio stream.

    Attributes:
        rate: sampling rate in Hz.
        duration: seconds, as the container states; 0.0 if it states none.
    """

    rate: int
    duration: float


class AudioFrame(NamedTuple):
    """Samples that a decoder returns together.

    Attributes:
        samples: float32 from -1 to 1, ``(samples, channels)``.
        seconds: time of the first sample, on the clock of the file.
    """

    samples: npt.NDArray[np.float32]
    seconds: float


def audio_facts(source: Source) -> list[AudioFacts]:
    """Return the facts of a video's audio streams, in the order of the file.

    Raises:
        DataError: the file is none that FFmpeg reads.
        OSError: the file cannot be read.
    """
    with open_container(source) as container, FileErrors(source):
        whole = (container.duration or 0) / 1_000_000
        return [
            AudioFacts(
                0 if s.codec_context is None else int(s.codec_context.sample_rate),
                float(s.duration * s.time_base) if s.duration else whole,
            )
            for s in container.streams.audio
        ]  # fmt: skip


class AudioFrames:
    """Iterator over the frames of an audio stream. One thread uses it at a time.

    Args:
        source: the path of a file, or its contents.
        stream: number of the stream among the audio streams.

    Raises:
        DataError: there is no such stream, or FFmpeg does not decode it.
        OSError: the file cannot be read.
    """

    def __init__(self, source: Source, stream: int) -> None:
        self._source, self._number = source, stream
        self._container: Any = None
        self._stream: Any = None
        self._frames: Iterator[AudioFrame] = iter(())
        self._reopen()

    def _reopen(self) -> None:
        """Open the file, at its beginning."""
        self.close()
        container = open_container(self._source)
        try:
            streams = container.streams.audio
            if not 0 <= self._number < len(streams):
                found = f"{name_of(self._source)}, which has {len(streams)}, got {self._number}"
                raise DataError(f"expected the number of an audio stream of {found}")
            stream = streams[self._number]
            context = stream.codec_context
            if context is None or not 0 < context.sample_rate <= MAX_RATE:
                raise DataError(f"expected an audio stream that FFmpeg decodes in {name_of(self._source)}")
            context.options = DECODER_OPTIONS
            context.thread_count = 1  # errors come with their packets
        except BaseException:
            container.close()
            raise
        self._container, self._stream, self._frames = container, stream, self._decoded(container, stream)

    def __iter__(self) -> AudioFrames:
        return self

    def __next__(self) -> AudioFrame:
        return next(self._frames)

    def seek(self, seconds: float, *, before: bool = False) -> None:
        """Move to the first frame that begins at a time or after it, or to the end.

        Args:
            seconds: the time, on the clock of the file.
            before: move to the last frame that begins at the time or before it instead, if there is one.

        Raises:
            DataError: a frame on the way is damaged.
        OSError: the file cannot be read.
        """
        if seconds <= LEAD_S or self._container is None:
            self._reopen()
        if seconds > LEAD_S:
            with FileErrors(self._source):  # decoders of lossy codecs need the samples before
                start = int((seconds - LEAD_S) / self._stream.time_base)
                self._container.seek(start, stream=self._stream, backward=True)
            self._frames = self._decoded(self._container, self._stream)
        slack = 0.5 / self._stream.codec_context.sample_rate
        last: AudioFrame | None = None
        after: AudioFrame | None = None
        for frame in self._frames:
            if frame.seconds >= seconds - slack:
                after = frame
                break
            last = frame
        if before and last is not None and (after is None or after.seconds > seconds + slack):
            rest = self._frames
            self._frames = itertools.chain([last], () if after is None else (after,), rest)
        elif after is not None:
            self._frames = itertools.chain([after], self._frames)

    def close(self) -> None:
        """Close the file. Idempotent."""
        self._frames = iter(())
        if self._container is not None:
            self._container.close()
            self._container = None

    def _decoded(self, container: Any, stream: Any) -> Iterator[AudioFrame]:
        """Decode from the container's position on."""
        end = 0.0
        context = stream.codec_context
        if context.is_open:
            context.flush_buffers()
        packets = container.demux(stream)
        while True:
            with FileErrors(self._source):
                packet = next(packets, None)
                if packet is None:
                    return
                frames: list[Any] = list(context.decode(packet))
            for frame in frames:
                seconds = end if frame.pts is None else float(frame.pts * frame.time_base)
                samples = samples_of(frame)
                end = seconds + len(samples) / frame.sample_rate
                if samples.dtype != np.float32:
                    samples = (samples * np.float32(2.0**-31)).astype(np.float32)
                yield AudioFrame(np.ascontiguousarray(samples), seconds)
