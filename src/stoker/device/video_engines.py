# SPDX-License-Identifier: Apache-2.0
"""Video engines of a GPU (NVDEC): the driver's library, the kernel that converts pictures, and memory for clips."""

from __future__ import annotations

import threading

from ..native import _native
from .gpu import Gpu

LIBRARY = "libnvcuvid.so.1"  # of the driver; containers need the driver's capability "video"
KERNEL = "stoker_video_frame"
SOURCE = '#include "device/video_frame.cuh"\n'
_KEPT_CLIPS = 32  # blocks of memory that are kept for later clips, at least

#: Numbers of codecs in the library, by FFmpeg's names.
CODECS = {"h264": 4, "hevc": 8, "vp8": 9, "vp9": 10, "av1": 11}


class VideoEngines:
    """Video engines of an open GPU.

    Args:
        gpu: the GPU.
    """

    def __init__(self, gpu: Gpu) -> None:
        self._gpu = gpu
        self._memory = _native.gpu.ClipMemory(gpu.device, gpu.quota, _KEPT_CLIPS)
        self._lock = threading.Lock()
        self._function: _native.gpu.Function | None = None

    def decoder(self, codec: str, bits: int) -> _native.gpu.VideoDecoder:
        """Open a decoder.

        Args:
            codec: FFmpeg's name of one of the ``CODECS``.
            bits: bits of a sample.

        Raises:
            DeviceFailure: the driver's library is missing, or the engines do not decode such a stream.
        """
        return _native.gpu.VideoDecoder(self._gpu.device, LIBRARY, CODECS[codec], bits)

    def clip(
        self, frames: int, height: int, width: int, *, words: bool, planar: bool = False
    ) -> _native.gpu.DeviceArray:  # fmt: skip
        """Return memory for a clip, FHWC or FCHW of bytes or words, with undefined contents.

        Raises:
            MemoryError: the GPU has none, or the pipeline's limit is reached.
        """
        return self._memory.clip((frames, height, width), words, planar)

    @property
    def function(self) -> _native.gpu.Function:
        """Return the compiled kernel."""
        with self._lock:
            if self._function is None:
                (self._function,) = self._gpu.functions([(KERNEL, SOURCE)])()
            return self._function
