# SPDX-License-Identifier: Apache-2.0
"""``torchvision.io.VideoReader`` of the backend "stoker": the frames of a video one by one, with their times."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import torch


class VideoReader:
    """Iterator over the frames of a video, with the calls of ``torchvision.io.VideoReader``.

    An item is ``{"data": frame, "pts": time}``: uint8 ``(3, height, width)``, and seconds on the clock of the file.
    Frames are those of ``eager.video.open``.

    Args:
        src: path of a file, or the contents of one: bytes, or a tensor uint8 ``(n,)``.
        stream: "video" or "video:0", the stream that ``eager.video.open`` reads.
        num_threads: without effect: the thread that asks for a frame decodes it.

    Raises:
        RuntimeError: there is no such file.
        ValueError: an argument is wrong, or names a stream of audio or another stream than the first one.
        DataError: the file is no video; on iteration, a picture is damaged.
    """

    def __init__(self, src: str | bytes | torch.Tensor, stream: str = "video", num_threads: int = 0) -> None:
        from ... import video

        _require_video(stream)
        source: Any = src.numpy() if isinstance(src, torch.Tensor) else src
        is_empty = source.size == 0 if isinstance(source, np.ndarray) else source in ("", b"")
        if is_empty or not isinstance(src, (str, bytes, torch.Tensor)):
            raise ValueError(
                f"expected a path, bytes or a tensor of them as `src`, not empty, got {type(src).__name__}"
            )
        if isinstance(source, str) and not os.path.exists(source):
            raise RuntimeError(f"File not found: {source}")
        self._video = video.open(source, dimension_order="NCHW")
        self._begins = self._video.get_frame_timestamp(slice(None))[:, 0]
        self._position = 0

    def __iter__(self) -> VideoReader:
        return self

    def __next__(self) -> dict[str, Any]:
        number = self._position
        if number >= len(self._video):
            raise StopIteration
        self._position = number + 1  # before decoding, so that iteration may continue after a damaged frame
        return {"data": torch.from_numpy(self._video[number]), "pts": float(self._begins[number])}

    def seek(self, time_s: float, keyframes_only: bool = False) -> VideoReader:
        """Move to the first frame that begins at a time or after it; return the reader.

        Args:
            time_s: seconds; a negative time is the beginning of the file's clock.
            keyframes_only: move to the last key frame that begins at the time or before it instead.

        Raises:
            ValueError: the time is not a number.
        """
        if math.isnan(time_s):
            raise ValueError(f"expected seconds as `time_s`, got {time_s}")
        time_s = max(time_s, 0.0)
        if keyframes_only:
            keys = np.asarray(self._video.get_key_indices(), np.int64)
            self._position = int(keys[self._begins[keys] <= time_s].max(initial=0))
        else:
            self._position = int(np.searchsorted(self._begins, time_s))
        return self

    def get_metadata(self) -> dict[str, dict[str, list[float]]]:
        """Return the duration in seconds and the mean rate of the stream; nothing about other streams."""
        facts = self._video.metadata
        return {"video": {"duration": [facts.duration_seconds], "fps": [facts.average_fps]}}

    def set_current_stream(self, stream: str) -> bool:
        """Move to the beginning of a stream, which is the only one; return True.

        Args:
            stream: "video" or "video:0".

        Raises:
            ValueError: another stream.
        """
        _require_video(stream)
        self._position = 0
        return True


def _require_video(stream: str) -> None:
    if stream not in ("video", "video:0"):
        raise ValueError(
            f"expected 'video' or 'video:0' as `stream`, got {stream!r}. `torchvision.io.read_video` and "
            "`stoker.fn.readers.video(with_audio=True)` return audio"
        )
