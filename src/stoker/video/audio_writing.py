# SPDX-License-Identifier: Apache-2.0
"""Audio tracks of written videos: AAC in MP4, MOV and Matroska, Opus in WebM."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError
from ..contract.text import brief, reason_of
from ..contract.whole_number import as_whole_number

_SUBJECT = "eager.video.write"
_BIT_RATE = 96_000  # bits per second and channel, at which both codecs are close to transparent
# The sampling rates in Hz that the formats define: the table of AAC, and those of Opus.
_RATES = {
    "aac": (96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350),
    "libopus": (48000, 24000, 16000, 12000, 8000),
}
_LAYOUTS = {1: "mono", 2: "stereo"}
_BLOCK = 1 << 15  # samples per frame that is passed to the encoder, of all channels


class Sound(NamedTuple):
    """Samples of an audio track.

    Attributes:
        samples: float32 ``(samples, channels)``.
        rate: sampling rate in Hz.
    """

    samples: npt.NDArray[np.float32]
    rate: int


def sound_of(audio: Any, sample_rate: Any, encoder: str) -> Sound | None:
    """Return the checked samples of an audio track; None if there is no audio.

    Args:
        audio: the argument of ``eager.video.write``.
        sample_rate: its sampling rate.
        encoder: FFmpeg's name of the audio encoder.

    Raises:
        ArgumentError: an argument is wrong.
    """
    if audio is None and sample_rate is None:
        return None
    if audio is None or sample_rate is None:
        absent = "audio" if audio is None else "sample_rate"
        raise ArgumentError(f"`{_SUBJECT}`: expected `audio` together with `sample_rate`, got no `{absent}`")
    rate = as_whole_number(sample_rate)
    if rate not in _RATES[encoder]:
        rates = ", ".join(str(r) for r in _RATES[encoder])
        raise ArgumentError(
            f"`{_SUBJECT}`: expected one of {rates} Hz as `sample_rate`, as the format has them, got "
            f"{brief(sample_rate)}. Resample with `eager.audio_resample`"
        )
    return Sound(_samples_of(audio), rate)


def _samples_of(audio: Any) -> npt.NDArray[np.float32]:
    try:
        samples = np.asarray(audio)
    except Exception as error:  # a foreign `__array__` may raise anything, as that of tensors on a GPU
        text = f"expected `audio` as an array in host memory, got {type(audio).__name__}: {reason_of(error)}"
        raise ArgumentError(f"`{_SUBJECT}`: {text}. Copy it with `.cpu()` or `.as_cpu()`") from error
    if samples.ndim == 1:
        samples = samples[:, None]
    is_right = samples.dtype in (np.float32, np.int16) and samples.ndim == 2 and samples.shape[1] in _LAYOUTS
    if not is_right or not len(samples):
        hint = ""
        if samples.ndim == 2 and samples.shape[0] in _LAYOUTS and samples.shape[1] not in _LAYOUTS:
            hint = ". Move the channels to the end: `audio.T`"
        raise ArgumentError(
            f"`{_SUBJECT}`: expected `audio` float32 or int16 (samples,) or (samples, channels) with 1 or 2 channels, "
            f"got {samples.dtype} {samples.shape}{hint}"
        )
    if samples.dtype == np.int16:
        return samples * np.float32(2.0**-15)
    if not np.isfinite(samples).all():
        raise ArgumentError(f"`{_SUBJECT}`: expected finite samples as `audio`, got some that are not")
    return samples.astype(np.float32, copy=False)


class SoundTrack:
    """Audio stream of a container that is being written.

    Args:
        av: the module ``av``.
        container: container opened for writing, before its header is written.
        encoder: FFmpeg's name of the audio encoder.
        sound: the samples.
    """

    def __init__(self, av: Any, container: Any, encoder: str, sound: Sound) -> None:
        channels = sound.samples.shape[1]
        self._av, self._sound, self._layout, self._at = av, sound, _LAYOUTS[channels], 0
        self._stream = container.add_stream(
            encoder, rate=sound.rate, layout=self._layout, bit_rate=_BIT_RATE * channels
        )

    def packets_to(self, seconds: float | None) -> Iterator[Any]:
        """Encode the samples before a time; None: all of them, and the end of the stream.

        The caller passes the time of each picture, so that the muxer holds few packets of either stream.
        """
        samples, rate = self._sound
        end = len(samples) if seconds is None else min(round(seconds * rate), len(samples))
        step = max(_BLOCK // samples.shape[1], 1)
        for first in range(self._at, end, step):
            block = np.ascontiguousarray(samples[first : min(first + step, end)])
            frame = self._av.AudioFrame.from_ndarray(block.reshape(1, -1), format="flt", layout=self._layout)
            frame.sample_rate, frame.pts, frame.time_base = rate, first, Fraction(1, rate)
            yield from self._stream.encode(frame)
        self._at = max(self._at, end)
        if seconds is None:
            yield from self._stream.encode(None)
