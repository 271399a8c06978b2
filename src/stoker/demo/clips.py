# SPDX-License-Identifier: Apache-2.0
"""Made videos for the demonstration: a moving scene, and the number of each frame as a barcode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..video.pyav import pyav

Pixels = npt.NDArray[np.uint8]

HEIGHT, WIDTH, FRAMES = 360, 640, 100
_BITS, _CELL, _EDGE = 8, 24, 12  # of the barcode: bits, pixels of a bit's square, distance from the corner
_DARK, _LIGHT = 16, 235
_RATE = 30
_DISCS = 5


@dataclass(frozen=True)
class Kind:
    """Form of a made video.

    Attributes:
        title: description for people.
        file: name of the file.
        encoder: FFmpeg's name of the encoder.
        options: its options.
        is_variable: frames have different durations.
    """

    title: str
    file: str
    encoder: str
    options: tuple[tuple[str, str], ...]
    is_variable: bool = False


_X264 = (("preset", "veryfast"), ("bf", "3"))
KINDS = (
    Kind("H.264 with B-frames, MP4", "h264.mp4", "libx264", _X264),
    Kind("HEVC with open groups, MP4", "hevc.mp4", "libx265", (
        ("preset", "ultrafast"), ("x265-params", "keyint=25:open-gop=1:bframes=3:log-level=none"),
    )),
    Kind("VP9, WebM", "vp9.webm", "libvpx-vp9", (("cpu-used", "8"), ("deadline", "realtime"), ("b", "1500k"))),
    Kind("H.264 with a variable rate, MP4", "variable.mp4", "libx264", _X264, is_variable=True),
)  # fmt: skip


@dataclass(frozen=True)
class Clip:
    """Made video.

    Attributes:
        kind: its form.
        path: its file.
    """

    kind: Kind
    path: Path


def make(folder: Path, progress: Callable[[int], object]) -> tuple[list[Clip], list[str]]:
    """Write a video of each kind. Return them, and the names of encoders that this build of FFmpeg lacks.

    Args:
        folder: folder for the files, which are overwritten.
        progress: function that receives the number of frames that were written.

    Raises:
        UnsupportedError: PyAV is not installed.
        OSError: the files cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    av, pictures = pyav(), [draw(number) for number in range(FRAMES)]
    clips, missing = [], []
    for kind in KINDS:
        try:
            av.codec.Codec(kind.encoder, "w")
        except ValueError:  # there is no such encoder
            missing.append(kind.encoder)
            continue
        clips.append(Clip(kind, folder / kind.file))
        _write(clips[-1], pictures, progress)
    return clips, missing


def _write(clip: Clip, pictures: Sequence[Pixels], progress: Callable[[int], object]) -> None:
    av = pyav()
    times = _times(len(pictures), is_variable=clip.kind.is_variable)
    with av.open(str(clip.path), "w") as file:
        stream = file.add_stream(clip.kind.encoder, rate=_RATE)
        stream.height, stream.width, stream.pix_fmt = HEIGHT, WIDTH, "yuv420p"
        stream.options = dict(clip.kind.options)
        stream.codec_context.gop_size = 25
        stream.codec_context.time_base = Fraction(1, 1000)
        for pixels, time in zip(pictures, times, strict=True):
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = time, Fraction(1, 1000)
            file.mux(stream.encode(frame))
            progress(1)
        file.mux(stream.encode(None))


def _times(count: int, *, is_variable: bool) -> list[int]:
    """Return the milliseconds of frames."""
    if not is_variable:
        return [round(1000 * number / _RATE) for number in range(count)]
    steps = np.random.default_rng(3).choice([10, 20, 33, 40, 100, 250], count - 1)
    return [0, *np.cumsum(steps).tolist()]


def draw(number: int) -> Pixels:
    """Return the picture with a number: discs that move before a gradient, and the barcode."""
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(np.float32)
    turn = 2 * np.pi * number / FRAMES
    waves = np.stack([np.sin(x / 90 + turn), np.sin(y / 70 - turn), np.sin((x + y) / 120 + 2 * turn)], -1)
    pixels = (90 + 40 * waves).astype(np.uint8)
    for disc in range(_DISCS):
        angle = turn * (1 + disc % 3) + 1.3 * disc
        center = 0.55 * HEIGHT + 0.3 * HEIGHT * np.sin(angle), WIDTH / 2 + (60 + 45 * disc) * np.cos(angle + disc)
        inside = (y - center[0]) ** 2 + (x - center[1]) ** 2 < (22 + 5 * disc) ** 2
        pixels[inside] = [(255, 148, 64), (90, 200, 250), (160, 230, 90), (250, 110, 160), (250, 230, 90)][disc]
    for bit in range(_BITS):
        left = _EDGE + _CELL * bit
        pixels[_EDGE : _EDGE + _CELL, left : left + _CELL] = _LIGHT if number >> bit & 1 else _DARK
    return pixels


def number_in(pixels: Any) -> int:
    """Return the number that the barcode of a picture shows."""
    middle = slice(_EDGE + _CELL // 4, _EDGE + 3 * _CELL // 4)
    cells = [pixels[middle, middle.start + _CELL * bit : middle.stop + _CELL * bit] for bit in range(_BITS)]
    return sum(int(np.mean(cell) > (_DARK + _LIGHT) / 2) << bit for bit, cell in enumerate(cells))
