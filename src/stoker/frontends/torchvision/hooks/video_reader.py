# SPDX-License-Identifier: Apache-2.0
"""``torchvision.io.VideoReader`` of the backend "stoker": frames of video or of audio one by one, with their times."""

from __future__ import annotations

import functools
import math
import os
from typing import Any

import numpy as np
import torch

from ....contract.errors import DataError
from ....video.audio_frames import AudioFrames, audio_facts


class VideoReader:
    """Iterator over the frames of a video, with the calls of ``torchvision.io.VideoReader``.

    An item is ``{"data": frame, "pts": time}``: of video uint8 ``(3, height, width)``, of audio float32 ``(samples,
    channels)`` from -1 to 1 as the decoder returns them together, and seconds on the clock of the file. Frames of video
    are those of ``eager.video.open``.

    Args:
        src: path of a file, or the contents of one: bytes, or a tensor uint8 ``(n,)``.
        stream: "video" or "video:0", the stream that ``eager.video.open`` reads; "audio" or "audio:N", the audio stream
            number N from 0 on.
        num_threads: without effect: the thread that asks for a frame decodes it.

    Raises:
        RuntimeError: there is no such file.
        ValueError: an argument is wrong, or names a stream that the file lacks, or another one of video than the first.
        DataError: the file is no video; on iteration, a picture or samples are damaged.
    """

    def __init__(self, src: str | bytes | torch.Tensor, stream: str = "video", num_threads: int = 0) -> None:
        from ... import video

        source: Any = src.numpy() if isinstance(src, torch.Tensor) else src
        is_empty = source.size == 0 if isinstance(source, np.ndarray) else source in ("", b"")
        if is_empty or not isinstance(src, (str, bytes, torch.Tensor)):
            raise ValueError(
                f"expected a path, bytes or a tensor of them as `src`, not empty, got {type(src).__name__}"
            )
        if isinstance(source, str) and not os.path.exists(source):
            raise RuntimeError(f"File not found: {source}")
        kind, number = _stream_of(stream)
        # As for videos, the contents of an array are copied.
        self._source: Any = source.tobytes() if isinstance(source, np.ndarray) else source
        if isinstance(source, str):
            self._source = os.path.abspath(source)
        self._open = functools.partial(video.open, dimension_order="NCHW")
        self._opened: Any = None
        self._begins = np.zeros(0)
        self._audio: AudioFrames | None = None
        self._position = 0
        self._facts = audio_facts(self._source)
        self._move_to(kind, number)

    def _move_to(self, kind: str, number: int) -> None:
        """Move to the beginning of a stream."""
        if kind == "audio" and number >= len(self._facts):
            raise ValueError(f"expected an audio stream of the {len(self._facts)} of the file, got number {number}")
        before, self._audio = self._audio, None
        if before is not None:
            before.close()
        if kind == "audio":
            self._audio = AudioFrames(self._source, number)
        self._position = 0
        if kind == "video":
            self._frames()

    def _frames(self) -> Any:
        """Return the open video, whose frame index the first call makes."""
        if self._opened is None:
            self._opened = self._open(self._source)
            self._begins = self._opened.get_frame_timestamp(slice(None))[:, 0]
        return self._opened

    def __iter__(self) -> VideoReader:
        return self

    def __next__(self) -> dict[str, Any]:
        if self._audio is not None:
            sound = next(self._audio)
            return {"data": torch.from_numpy(sound.samples), "pts": sound.seconds}
        number, frames = self._position, self._frames()
        if number >= len(frames):
            raise StopIteration
        self._position = number + 1  # before decoding, so that iteration may continue after a damaged frame
        return {"data": torch.from_numpy(frames[number]), "pts": float(self._begins[number])}

    def seek(self, time_s: float, keyframes_only: bool = False) -> VideoReader:
        """Move to the first frame that begins at a time or after it; return the reader.

        Args:
            time_s: seconds; a negative time is the beginning of the file's clock.
            keyframes_only: move to the last key frame that begins at the time or before it instead. All frames of
                audio are such ones.

        Raises:
            ValueError: the time is not a number.
        """
        if math.isnan(time_s):
            raise ValueError(f"expected seconds as `time_s`, got {time_s}")
        time_s = max(time_s, 0.0)
        if self._audio is not None:
            self._audio.seek(time_s, before=keyframes_only)
        elif keyframes_only:
            keys = np.asarray(self._frames().get_key_indices(), np.int64)
            self._position = int(keys[self._begins[keys] <= time_s].max(initial=0))
        else:
            self._position = int(np.searchsorted(self._begins, time_s))
        return self

    def get_metadata(self) -> dict[str, dict[str, list[float]]]:
        """Return the duration in seconds and the rate of each stream: "video" with `fps`, "audio" with `framerate`."""
        found: dict[str, dict[str, list[float]]] = {}
        try:
            facts = self._frames().metadata
        except DataError:
            if self._audio is None:
                raise
        else:
            found["video"] = {"duration": [facts.duration_seconds], "fps": [facts.average_fps]}
        if self._facts:
            found["audio"] = {
                "duration": [f.duration for f in self._facts], "framerate": [float(f.rate) for f in self._facts]
            }  # fmt: skip
        return found

    def set_current_stream(self, stream: str) -> bool:
        """Move to the beginning of a stream; return True.

        Args:
            stream: "video" or "video:0", "audio" or "audio:N".

        Raises:
            ValueError: another stream, or one that the file lacks.
        """
        self._move_to(*_stream_of(stream))
        return True


def _stream_of(stream: str) -> tuple[str, int]:
    """Return the kind of a stream and its number among those of its kind."""
    kind, _, number = stream.partition(":")
    if (stream in ("video", "video:0")) or (kind == "audio" and (stream == kind or number.isdecimal())):
        return kind, int(number or 0)
    raise ValueError(f"expected 'video', 'video:0', 'audio' or 'audio:N' as `stream`, got {stream!r}")
