# SPDX-License-Identifier: Apache-2.0
"""``torchvision.set_video_backend("stoker")``: torchvision's readers of videos, with Stoker's frames.

``torchvision.io.read_video``, ``read_video_timestamps`` and ``VideoReader`` are then Stoker's, also in releases of
torchvision that have removed them. Another backend brings back what torchvision had.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from .video_reader import VideoReader

if TYPE_CHECKING:
    from ....video.frame_index import FrameIndex

NAME = "stoker"
_LAYOUTS = ("THWC", "TCHW")
_UNITS = ("pts", "sec")


def register_in(module: Any) -> None:
    """Let torchvision's ``set_video_backend`` accept the name "stoker".

    Args:
        module: torchvision.
    """
    original: Callable[[str], None] | None = getattr(module, "set_video_backend", None)
    if original is None or hasattr(original, "offers_stoker"):
        return
    own: dict[str, Any] = {
        "read_video": read_video, "read_video_timestamps": read_video_timestamps, "VideoReader": VideoReader
    }  # fmt: skip
    replaced: dict[str, Any] = {}

    @functools.wraps(original)
    def set_video_backend(backend: str) -> None:
        if backend == NAME:
            if not replaced:
                replaced.update({"_video_backend": module._video_backend, **{n: vars(module.io).get(n) for n in own}})
            module._video_backend = NAME  # the result of `get_video_backend`
            vars(module.io).update(own)
            return
        if replaced:
            module._video_backend = replaced.pop("_video_backend")
            for name, member in replaced.items():
                if member is None:
                    vars(module.io).pop(name, None)
                else:
                    setattr(module.io, name, member)
            replaced.clear()
        original(backend)

    set_video_backend.offers_stoker = True  # type: ignore[attr-defined]
    module.set_video_backend = set_video_backend


def read_video(
    filename: str, start_pts: float | Fraction = 0, end_pts: float | Fraction | None = None, pts_unit: str = "pts",
    output_format: str = "THWC",
) -> tuple[torch.Tensor, torch.Tensor, dict[str, Any]]:  # fmt: skip
    """Read the frames and the audio of a part of a video, as ``torchvision.io.read_video`` does.

    Args:
        filename: path of the file.
        start_pts: time at which the part begins. The frame that is shown then is the first one.
        end_pts: time at which it ends; a frame that begins then is the last one. By default the end of the file.
        pts_unit: "sec", or "pts", the unit of the stream's time stamps.
        output_format: axes of the frames: "THWC" or "TCHW".

    Returns:
        The frames, uint8; the audio, float32 ``(channels, samples)``; "video_fps" and "audio_fps", if there are such
        streams.

    Raises:
        RuntimeError: there is no such file.
        ValueError: an argument is wrong.
        DataError: the file is no video, or a picture is damaged.
    """
    from ....video.clip_audio import read_track
    from ... import video

    layout = output_format.upper()
    if layout not in _LAYOUTS:
        raise ValueError(f"expected 'THWC' or 'TCHW' as `output_format`, got {output_format!r}")
    end = math.inf if end_pts is None else end_pts
    if end < start_pts:
        raise ValueError(f"expected an `end_pts` from `start_pts` on, got {start_pts} and {end_pts}")
    index = _index_of(filename, pts_unit)
    unit = Fraction(1) if pts_unit == "pts" else index.time_base
    first = math.floor(Fraction(start_pts) / unit)
    last: float = math.inf if math.isinf(end) else math.ceil(Fraction(end) / unit)
    begin = max(int(np.searchsorted(index.pts, first, side="right")) - 1, 0) if first > 0 else 0
    stop = int(np.searchsorted(index.pts, last, side="right"))
    with video.open(filename) as opened:
        frames = torch.from_numpy(opened[begin:stop]) if begin < stop else torch.empty((0, 1, 1, 3), dtype=torch.uint8)
    info: dict[str, Any] = {"video_fps": float(index.rate)}
    seconds = float(index.time_base / unit)  # of the unit of the arguments
    audio = read_track(filename, float(start_pts) * seconds, float(end) * seconds)
    samples = torch.empty((1, 0))
    if audio is not None:
        samples, info["audio_fps"] = torch.from_numpy(np.ascontiguousarray(audio.samples.T)), audio.rate
    return frames.permute(0, 3, 1, 2) if layout == "TCHW" else frames, samples, info


def read_video_timestamps(filename: str, pts_unit: str = "pts") -> tuple[list[Any], float | None]:
    """Return the times of all frames and their rate, as ``torchvision.io.read_video_timestamps`` does.

    Args:
        filename: path of the file.
        pts_unit: "sec" for fractions of seconds, or "pts", the unit of the stream's time stamps.

    Raises:
        RuntimeError: there is no such file.
        ValueError: another unit.
        DataError: the file is no video.
    """
    index = _index_of(filename, pts_unit)
    times: list[Any] = index.pts.tolist()
    return [t * index.time_base for t in times] if pts_unit == "sec" else times, float(index.rate)


def _index_of(filename: str, unit: str) -> FrameIndex:
    from ....readers._video import index_of

    if unit not in _UNITS:
        raise ValueError(f"expected 'sec' or 'pts' as `pts_unit`, got {unit!r}")
    if not os.path.exists(filename):
        raise RuntimeError(f"File not found: {filename}")
    found: FrameIndex = index_of(os.path.abspath(filename))
    return found
