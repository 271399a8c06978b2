# SPDX-License-Identifier: Apache-2.0
"""Choice of a clip's frames: their numbers, also beyond the end of the range that the clip lies in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError, DataError
from ..contract.text import brief
from .frame_index import KEY, FrameIndex, Ints

MAX_FRAMES = 1 << 24  # frames of a video at a constant rate
MAX_RATE = 1e6
SLACK = 1e-9  # of a second: a decimal number means the frame whose time it rounds

_MOST_ROUNDED = 5e-4  # seconds by which files may round a time: Matroska stores milliseconds

PAD_MODES = ("none", "constant", "edge", "reflect_1001", "reflect_101")
_SAME_PADS = {"repeat": "edge", "symmetric": "reflect_1001", "reflect": "reflect_101"}
PAD_NAMES = (*PAD_MODES, *_SAME_PADS)


def pad_mode_of(name: str) -> str:
    """Return the name of a way to pad without its synonyms."""
    return _SAME_PADS.get(name, name)


def padded(frames: Ints, begin: int, end: int, mode: str) -> Ints:
    """Return numbers of frames of which those past the end of a range are replaced, -1 for constant ones.

    Args:
        frames: numbers of frames, at least ``begin``.
        begin: first frame of the range.
        end: the frame after its last one.
        mode: one of ``PAD_MODES``.
    """
    if mode == "none":
        return frames[frames < end]
    count, at = end - begin, frames - begin
    if mode == "constant":
        return np.where(at < count, frames, -1)
    if mode == "edge":
        return begin + np.minimum(at, count - 1)
    period = 2 * count if mode == "reflect_1001" else max(2 * (count - 1), 1)
    at = at % period
    last = period - 1 if mode == "reflect_1001" else period
    return begin + np.minimum(at, last - at) if count > 1 else np.full_like(frames, begin)


def fill_of(value: Any, most: int = 255) -> tuple[int, ...]:
    """Return the values of constant pixels: one, or one per channel.

    Raises:
        ArgumentError: they are not one or three whole numbers from 0 to ``most``.
    """
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    if len(values) not in (1, 3) or not all(type(x) is int and 0 <= x <= most for x in values):
        raise ArgumentError(f"expected one or three whole numbers from 0 to {most} as `fill_value`, got {brief(value)}")
    return values


@dataclass(frozen=True)
class Rule:
    """Frames of a clip, by its first frame and the range that it lies in.

    Attributes:
        length: number of frames.
        stride: distance between them.
        pad_mode: one of ``PAD_MODES``.
        uniform: frames at equal distances over the whole range instead.
        random: a clip at a random place of the range.
    """

    length: int
    stride: int
    pad_mode: str = "none"
    uniform: bool = False
    random: bool = False

    @property
    def span(self) -> int:
        """Number of frames from the first to the last one."""
        return (self.length - 1) * self.stride + 1

    @property
    def fixed_length(self) -> int | None:
        """Number of frames if it is that of all clips."""
        return None if self.pad_mode == "none" and not self.uniform else self.length

    def frames(self, first: int, begin: int, end: int, share: float = 0.0) -> Ints:
        """Return the numbers of a clip's frames; -1 for constant frames.

        Args:
            first: first frame, unless the clip is random or uniform.
            begin: first frame of the range.
            end: the frame after its last one.
            share: number from 0 to 1 (exclusive) that places a random clip.
        """
        if self.uniform:
            at = np.linspace(begin, end - 1, self.length) if self.length > 1 else np.array([float(begin)])
            return np.floor(at + 0.5).astype(np.int64)
        if self.random:
            first = begin + int(share * (max(end - begin - self.span, 0) + 1))
        return padded(first + self.stride * np.arange(self.length), begin, end, self.pad_mode)

    def starts(self, begin: int, end: int, step: int) -> Ints:
        """Return the first frames of the clips of a range."""
        if self.uniform:
            return np.array([begin])
        is_padded = self.pad_mode != "none"
        starts = np.arange(begin, end if is_padded else end - self.span + 1, step)
        return starts[:1] if self.random else starts


@dataclass(frozen=True)
class FrameChoice:
    """Frames of a video that clips count, instead of all.

    Attributes:
        fps: those that are shown at this rate per second, from the first one on; 0: all frames.
        keyframes_only: those that are decoded without any other frame.
    """

    fps: float = 0.0
    keyframes_only: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.fps <= MAX_RATE:
            raise ArgumentError(f"expected frames per second up to 10**6 as `fps`, got {self.fps:g}")
        if self.fps and self.keyframes_only:
            raise ArgumentError("expected one of `fps` and `keyframes_only`, got both")

    def of(self, index: FrameIndex) -> Ints | None:
        """Return the numbers of the frames, in order; None for all.

        Raises:
            DataError: a file states times so far apart that there would be too many.
        """
        if self.keyframes_only:
            return np.flatnonzero(index.packet_flags[index.order] & KEY)
        if not self.fps:
            return None
        seconds = index.times
        slack = min(max(float(index.time_base) / 2, SLACK), _MOST_ROUNDED)
        count = float(np.ceil((seconds[-1] - slack) * self.fps))
        if not count <= MAX_FRAMES:
            raise DataError(f"expected at most {MAX_FRAMES} frames at {self.fps:g} per second, got {count:.0f}")
        return np.searchsorted(seconds[:-1], np.arange(max(int(count), 1)) / self.fps + slack, side="right") - 1


def first_at(seconds: Any, second: float) -> int:
    """Return the first frame at a second or later, by the times of all frames."""
    return int(np.searchsorted(seconds, second - SLACK, side="left"))


def last_at(seconds: Any, second: float) -> int:
    """Return the last frame at a second or earlier, by the times of all frames."""
    return int(np.searchsorted(seconds, second + SLACK, side="right")) - 1
