# SPDX-License-Identifier: Apache-2.0
"""Video files of frames, for looking at clips: H.264 or VP9, with colors of BT.709 and the limited range, and audio."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..contract.errors import ArgumentError, UnsupportedError
from ..contract.file_path import as_path
from ..contract.text import brief, reason_of
from .audio_writing import Sound, SoundTrack, sound_of
from .pyav import pyav

_SUBJECT = "eager.video.write"
_BT709, _LIMITED = 1, 1  # FFmpeg's numbers of the matrix and the range
_H264 = ("libx264", {"crf": "18", "preset": "veryfast"})
_VP9 = ("libvpx-vp9", {"crf": "24", "b": "0", "cpu-used": "6", "row-mt": "1"})


class _Form(NamedTuple):
    """FFmpeg's muxer of a file, its encoder of pictures with options, whose rates are of good quality, and of audio."""

    muxer: str
    encoder: str
    options: dict[str, str]
    audio_encoder: str


_FORMS = {
    ".mp4": _Form("mp4", *_H264, "aac"), ".mov": _Form("mov", *_H264, "aac"), ".mkv": _Form("matroska", *_H264, "aac"),
    ".webm": _Form("webm", *_VP9, "libopus"),
}  # fmt: skip
_MOST_FPS, _LEAST_FPS = 1000.0, 0.1
_MOST_SIDE, _LEAST_SIDE = 16384, 2  # libx264 needs two columns and rows


def write_video(path: str | os.PathLike[str], frames: Any, fps: float, audio: Any, sample_rate: Any) -> None:
    """Write a video file; ``eager.video.write`` explains the arguments and errors."""
    name = as_path(path)
    if name is None or "\0" in os.fsdecode(name):
        raise ArgumentError(f"`{_SUBJECT}`: expected the path of a file, got {brief(path)}")
    target = Path(os.fsdecode(name))
    form = _FORMS.get(target.suffix.lower())
    if form is None:
        raise ArgumentError(
            f"`{_SUBJECT}`: expected a path that ends in {', '.join(_FORMS)}, got {brief(target.suffix)} at the end"
        )
    rate = _rate_of(fps)
    sound = sound_of(audio, sample_rate, form.audio_encoder)
    rows = iter(_frames_of(frames))
    first = next(rows, None)
    if first is None:
        raise ArgumentError(f"`{_SUBJECT}`: expected at least one frame, got none")
    pixels = _pixels_of(first, 0)
    part = target.with_name(f".{target.name}.part")
    try:
        with open(part, "wb") as file:
            _encode(file, form, rate, sound, chain([pixels], rows))
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _encode(file: Any, form: _Form, rate: Fraction, sound: Sound | None, rows: Iterator[Any]) -> None:
    av = pyav()
    for encoder in (form.encoder, form.audio_encoder if sound else form.encoder):
        if encoder not in av.codecs_available:
            raise UnsupportedError(
                f"`{_SUBJECT}`: expected a package `av` (PyAV) whose FFmpeg has the encoder {encoder}, got one without "
                "it. The wheels of `pip install av` have it"
            )
    first = next(rows)
    height, width, _ = first.shape
    with av.open(file, "w", format=form.muxer) as container:
        stream = container.add_stream(form.encoder, rate=rate, options=form.options)
        stream.width, stream.height = width, height
        # H.264 with a chroma sample for 2 x 2 pixels has even sizes only.
        is_odd = form.encoder == "libx264" and (height | width) & 1
        stream.pix_fmt = "yuv444p" if is_odd else "yuv420p"
        stream.codec_context.colorspace, stream.codec_context.color_range = _BT709, _LIMITED
        track = SoundTrack(av, container, form.audio_encoder, sound) if sound else None
        for number, row in enumerate(chain([first], rows)):
            pixels = row if number == 0 else _pixels_of(row, number)
            if pixels.shape != first.shape:
                raise ArgumentError(
                    f"`{_SUBJECT}`: expected frames of one shape, got {first.shape} as frame 0 and {pixels.shape} as "
                    f"frame {number}. Resize or pad them"
                )
            frame = av.VideoFrame.from_ndarray(pixels, format="gray" if pixels.shape[2] == 1 else "rgb24")
            frame = frame.reformat(format=stream.pix_fmt, dst_colorspace=_BT709, dst_color_range=_LIMITED)
            container.mux(stream.encode(frame))
            if track:
                container.mux(track.packets_to(float((number + 1) / rate)))
        container.mux(stream.encode(None))
        if track:
            container.mux(track.packets_to(None))


def _rate_of(fps: Any) -> Fraction:
    try:
        rate = float(fps)
    except (TypeError, ValueError, OverflowError):
        rate = 0.0
    if not _LEAST_FPS <= rate <= _MOST_FPS:
        raise ArgumentError(
            f"`{_SUBJECT}`: expected from {_LEAST_FPS:g} to {_MOST_FPS:g} frames per second as `fps`, got {brief(fps)}"
        )
    return Fraction(rate).limit_denominator(1001)


def _frames_of(frames: Any) -> Iterable[Any]:
    """Return the frames of an array with four axes, or an iterable."""
    if hasattr(frames, "ndim") or hasattr(frames, "__array__"):
        clip = _as_array(frames, "frames")
        if clip.ndim != 4:
            raise ArgumentError(
                f"`{_SUBJECT}`: expected a clip (frames, height, width, channels), or a list of frames, got an array "
                f"{clip.shape}"
            )
        return clip
    if isinstance(frames, (str, bytes)) or not isinstance(frames, Iterable):
        raise ArgumentError(f"`{_SUBJECT}`: expected a clip (frames, height, width, channels), got {brief(frames)}")
    return frames


def _as_array(value: Any, wanted: str) -> np.ndarray:
    try:
        return np.asarray(value)
    except Exception as error:  # a foreign `__array__` may raise anything, as that of tensors on a GPU
        text = f"expected {wanted} as an array in host memory, got {type(value).__name__}: {reason_of(error)}"
        raise ArgumentError(f"`{_SUBJECT}`: {text}. Copy it with `.cpu()` or `.as_cpu()`") from error


def _pixels_of(value: Any, number: int) -> np.ndarray:
    """Return a frame as a contiguous array (height, width, channels)."""
    pixels = _as_array(value, f"frame {number}")
    if pixels.dtype != np.uint8 or pixels.ndim != 3 or pixels.shape[2] not in (1, 3):
        hint = ""
        if pixels.dtype != np.uint8:
            hint = ". Convert them to values from 0 to 255 with `astype(numpy.uint8)` or `fn.cast`"
        elif pixels.ndim == 3 and pixels.shape[0] in (1, 3):
            hint = ". Move the channels to the end: `frames.transpose(0, 2, 3, 1)`"
        raise ArgumentError(
            f"`{_SUBJECT}`: expected frames uint8 (height, width, 3) or (height, width, 1), got {pixels.dtype} "
            f"{pixels.shape} as frame {number}{hint}"
        )
    height, width, _ = pixels.shape
    if not _LEAST_SIDE <= min(height, width) <= max(height, width) <= _MOST_SIDE:
        raise ArgumentError(
            f"`{_SUBJECT}`: expected frames of {_LEAST_SIDE} to {_MOST_SIDE} rows and columns, got {height} x {width}"
        )
    return np.ascontiguousarray(pixels)
