# SPDX-License-Identifier: Apache-2.0
"""GPUs that ``eager.video`` decodes on: one open GPU with its decoders per process and number."""

from __future__ import annotations

import atexit
import os
import threading
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError
from ..contract.text import brief
from ..contract.whole_number import as_whole_number
from ..video.clip import ClipPixels
from ..video.engine_clips import ClipsOnEngines
from ..video.pool import POOL, VideoFile
from .launcher import find_process_gpu
from .video_frames import Pixels


class _OpenEngines:
    """Decoders of the process on the GPUs that videos were opened for. They stay open until the process ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_number: dict[int, ClipsOnEngines] = {}

    def of(self, number: int) -> ClipsOnEngines:
        """Return the decoders on a GPU.

        Raises:
            DeviceError: the GPU cannot be used.
        """
        from ..device.gpu import Gpu

        with self._lock:
            if number not in self._by_number:
                self._by_number[number] = ClipsOnEngines(Gpu.open(number))
            return self._by_number[number]

    def close(self) -> None:
        """Close idle decoders, at the end of the process, while the driver still works."""
        with self._lock:
            engines = list(self._by_number.values())
            self._by_number.clear()
        for one in engines:
            one.close()

    def reset(self) -> None:
        """Forget everything, in a child process, which cannot use the GPUs of its parent."""
        self.__dict__ = _OpenEngines().__dict__


_ENGINES = _OpenEngines()
atexit.register(_ENGINES.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_ENGINES.reset)


def gpu_number(device: Any, device_id: Any) -> int | None:
    """Return the number of the GPU that arguments name, or None for the CPU.

    Args:
        device: "cpu" or "gpu".
        device_id: number of the GPU; None: the one that the launcher's variables give this process, or 0.

    Raises:
        ArgumentError: an argument is wrong.
    """
    if not isinstance(device, str) or device not in ("cpu", "gpu"):
        raise ArgumentError(f"`eager.video.open`: expected cpu or gpu as `device`, got {brief(device)}")
    number = as_whole_number(device_id)
    if device_id is not None and (number is None or number < 0):
        text = f"expected the number of a GPU as `device_id`, got {brief(device_id)}"
        raise ArgumentError(f"`eager.video.open`: {text}")
    if device == "cpu":
        if number is not None:
            raise ArgumentError('`eager.video.open`: expected `device_id` with `device="gpu"`, got it with "cpu"')
        return None
    return find_process_gpu() if number is None else number


class EngineVideo:
    """One video of ``eager.video`` on a GPU.

    Args:
        number: number of the GPU.
        file: the video.
        pixels: form of the pixels.
        planar: frames are CHW instead of HWC.

    Raises:
        DeviceError: the GPU cannot be used.
    """

    def __init__(self, number: int, file: VideoFile, pixels: ClipPixels, *, planar: bool) -> None:
        self._engines = _ENGINES.of(number)
        self._file, self._pixels, self._planar = file, pixels, planar

    def decode(self, numbers: npt.NDArray[np.int64]) -> Pixels | BaseException:
        """Decode frames by the engines, or what they leave by the CPU. Return them in the GPU's memory, or an error."""
        if self._pixels.reduction == 1:
            found = self._engines.decode(self._file, {0: numbers}, self._pixels, planar=self._planar)
            if found:
                return found[0]
        with POOL.borrow(self._file, int(numbers.min())) as decoder:
            clip = self._pixels.decode(decoder, [numbers])[0]
        return clip if isinstance(clip, BaseException) else self._engines.upload(clip, planar=self._planar)

    def empty(self, height: int, width: int) -> Pixels:
        """Return an array of no frames."""
        return self._engines.upload(np.empty((0, height, width, 3), self._pixels.dtype), planar=self._planar)

    def release(self) -> None:
        """Free the decoders of closed videos for other ones. The garbage collector may call it, too."""
        self._engines.sweep(waits=False)
