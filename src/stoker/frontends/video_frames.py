# SPDX-License-Identifier: Apache-2.0
"""Values of ``eager.video``: frames with their times, and the facts of a video."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError
from ..contract.text import brief, reason_of
from ..video.frame_index import FrameIndex
from ..video.reduction import reduced_size

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
Pixels = Any  # an array of uint8 or uint16, or a DeviceArray in a GPU's memory


def frame_of(frames: Pixels, number: int) -> Pixels:
    """Return one of several frames, without a copy."""
    return frames[number] if isinstance(frames, np.ndarray) else frames.row(number)


class OutOfRangeError(ArgumentError, IndexError):
    """A number or a time at which the video has no frame."""


class Frame(NamedTuple):
    """Frame of a video.

    Attributes:
        data: uint8 or uint16 ``(height, width, 3)``, or ``(3, height, width)`` with ``dimension_order="NCHW"``.
        pts_seconds: time at which it is shown.
        duration_seconds: time until the next frame is shown.
    """

    data: Pixels
    pts_seconds: float
    duration_seconds: float


@dataclass(frozen=True, eq=False)
class FrameBatch:
    """Frames of a video.

    Attributes:
        data: uint8 or uint16 ``(frames, height, width, 3)``, or ``(frames, 3, height, width)``.
        pts_seconds: times at which they are shown, float64 ``(frames,)``.
        duration_seconds: times until the frames after them are shown, float64 ``(frames,)``.
    """

    data: Pixels
    pts_seconds: Doubles
    duration_seconds: Doubles

    def __len__(self) -> int:
        return int(self.data.shape[0])

    def __getitem__(self, number: int) -> Frame:
        number = range(len(self))[number]
        return Frame(frame_of(self.data, number), float(self.pts_seconds[number]), float(self.duration_seconds[number]))


@dataclass(frozen=True)
class Metadata:
    """Facts of a video, from its packets.

    Attributes:
        num_frames: number of frames.
        height: height of the frames that calls return.
        width: width of these frames.
        average_fps: frames per second, as the file states, or on average.
        begin_stream_seconds: time of the first frame.
        end_stream_seconds: time at which the last frame ends.
        duration_seconds: time between the two.
        codec: FFmpeg's name of the codec, such as ``h264``.
        pixel_format: FFmpeg's name of the stored pixel format, such as ``yuv420p``.
        rotation: degrees, counterclockwise, by which players turn the stored frames.
        stream_index: number of the stream in the file.
        is_variable_rate: whether the durations of frames differ by more than a tenth of their mean.
        damage: description of damage that was found without decoding, as of a file that is cut off; "" if there is
            none.
    """

    num_frames: int
    height: int
    width: int
    average_fps: float
    begin_stream_seconds: float
    end_stream_seconds: float
    duration_seconds: float
    codec: str
    pixel_format: str
    rotation: int
    stream_index: int
    is_variable_rate: bool
    damage: str


def times_of(seconds: Any) -> Doubles:
    """Return times from a user, float64 ``(n,)``.

    Raises:
        ArgumentError: they are no finite numbers.
    """
    try:
        found = np.asarray(seconds, np.float64)
    except Exception as error:  # as for numbers of frames
        text = f"expected times in seconds, got {brief(seconds)}: {reason_of(error)}"
        raise ArgumentError(f"`eager.video`: {text}") from error
    if found.ndim != 1 or not np.isfinite(found).all():
        raise ArgumentError(f"`eager.video`: expected a list of finite times in seconds, got {brief(seconds)}")
    return found


def seconds_of(ticks: Ints, index: FrameIndex) -> Doubles:
    """Return times in seconds, the nearest doubles to fractions of up to 53 bits."""
    return ticks.astype(np.float64) * index.time_base.numerator / index.time_base.denominator


def metadata_of(index: FrameIndex, is_turned: bool, reduction: int) -> Metadata:
    """Return the facts of a video whose frames are turned as the file says, or not, and of a reduced size."""
    begin, end = seconds_of(np.array([index.pts[0], index.end]), index).tolist()
    size = reduced_size(index.size, reduction)
    size = size[::-1] if is_turned and index.rotation // 90 & 1 else size
    durations = np.diff(index.pts)
    return Metadata(
        num_frames=len(index), height=size[0], width=size[1], average_fps=float(index.rate),
        begin_stream_seconds=begin, end_stream_seconds=end, duration_seconds=end - begin, codec=index.codec_name,
        pixel_format=index.pixel_format, rotation=index.rotation, stream_index=index.stream,
        is_variable_rate=len(durations) > 1 and bool(10 * np.ptp(durations) > durations.mean()), damage=index.damage,
    )  # fmt: skip
