# SPDX-License-Identifier: Apache-2.0
"""Clips that a GPU's video engines decode, for readers and `decoders.video`."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..contract.errors import is_system_failure
from ..contract.feed import GpuArray
from ..contract.types import DType
from ..contract.warning import warn
from ..device.video_engines import VideoEngines
from ..native import _native
from ..settings import default_threads
from .clip import ClipPixels
from .decoder import VideoDecoder
from .engine_decoder import EngineDecoders, NotForEnginesError, StreamFacts, facts_of
from .pool import POOL, VideoFile, VideoKey
from .pyav import Source, name_of

Wanted = TypeVar("Wanted", bound=Hashable)
_MAX_FACTS = 1 << 16  # files whose facts are kept


class ClipsOnEngines:
    """Decoders on the video engines of a GPU. Threads may use it concurrently.

    What the engines do not decode is left to the CPU, with a warning for the first file of each reason.

    Args:
        gpu: the open GPU.
        threads: number of threads that decode; by default `default_threads`.
    """

    def __init__(self, gpu: Any, threads: int | None = None) -> None:
        self._engines = VideoEngines(gpu)
        self._decoders = EngineDecoders(self._engines, threads or default_threads())
        self._lock = threading.Lock()
        self._facts: dict[VideoKey, StreamFacts | None] = {}  # None: the file is not for the engines
        self._warned = set[str]()

    def decode(
        self, file: VideoFile, clips: Mapping[Wanted, npt.NDArray[np.int64]], pixels: ClipPixels,
        video: VideoDecoder | None = None, *, planar: bool = False,
    ) -> dict[Wanted, _native.gpu.DeviceArray]:  # fmt: skip
        """Decode clips of one file. Return those that the engines have decoded.

        Args:
            file: the file.
            clips: numbers of the frames of each clip, -1 for constant frames.
            pixels: form of the pixels.
            video: decoder of the file on the CPU; by default one of the pool.
            planar: clips are FCHW instead of FHWC.

        Raises:
            OSError: the system fails.
        """

        def decode() -> list[Any]:
            facts = self._facts_of(file, video)
            if facts is None:
                return []
            index = POOL.index(file) if video is None else video.index
            first = min(int(f[f >= 0].min()) for f in clips.values())
            with self._decoders.borrow(file.key, file.source, index, facts, first) as decoder:
                return list(decoder.decode(pixels, list(clips.values()), planar=planar))

        return self._taken(clips, decode, file.source, lambda: self._keep(file, None))

    def upload(self, clip: npt.NDArray[Any], *, planar: bool = False) -> _native.gpu.DeviceArray:
        """Copy a clip, FHWC of uint8 or uint16, into the GPU's memory.

        Args:
            clip: the clip. Without frames it must have a height and a width.
            planar: the copy is FCHW.

        Raises:
            MemoryError: the GPU has no memory left.
        """
        frames, height, width, _ = clip.shape
        copy = self._engines.clip(max(frames, 1), height, width, words=clip.dtype == np.uint16, planar=planar)
        for number, frame in enumerate(clip):
            own = np.ascontiguousarray(frame.transpose(2, 0, 1) if planar else frame)
            _native.gpu.write_frame(copy, number, own.reshape(-1).view(np.uint8))
        return copy.first(frames)

    def decode_once(
        self, video: VideoDecoder, source: Source, frames: npt.NDArray[np.int64], pixels: ClipPixels
    ) -> _native.gpu.DeviceArray | None:
        """Decode a clip of a file that no other call decodes. Return None if the engines have not decoded it.

        Args:
            video: decoder of the file on the CPU.
            source: the file.
            frames: numbers of the frames, -1 for constant frames.
            pixels: form of the pixels.

        Raises:
            OSError: the system fails.
        """

        def decode() -> list[Any]:
            facts = facts_of(video)
            with self._decoders.borrow(None, source, video.index, facts, 0) as decoder:
                return list(decoder.decode(pixels, [frames]))

        return self._taken({0: frames}, decode, source, lambda: None).get(0)

    def _taken(
        self, clips: Mapping[Wanted, Any], decode: Callable[[], list[Any]], source: Source, leave: Callable[[], None]
    ) -> dict[Wanted, _native.gpu.DeviceArray]:
        """Return the clips that a call has decoded; warn of reasons for which others are left to the CPU."""
        reason: Exception | None = None
        try:
            decoded = decode()
        except (NotForEnginesError, _native.gpu.DeviceFailure) as error:
            reason, decoded = error, []
        except Exception as error:
            if is_system_failure(error) and not isinstance(error, MemoryError):
                raise
            decoded = [error for _ in clips]
        found = dict(zip(clips, decoded, strict=False))
        failure = next((x for x in found.values() if isinstance(x, Exception)), None)
        if reason is not None or isinstance(failure, NotForEnginesError):
            leave()
            self._warn(
                f"{name_of(source)} is decoded on the CPU, and so are other files for the same reason",
                f"{reason or failure}",
            )
        elif failure is not None:  # if the CPU cannot decode it either, the row has the CPU's error
            text = "the GPU has no memory left" if isinstance(failure, MemoryError) else f"{failure}"
            self._warn(f"clips of {name_of(source)} are decoded on the CPU, as the video engines fail", text)
        return {w: x for w, x in found.items() if not isinstance(x, Exception)}

    def _facts_of(self, file: VideoFile, video: VideoDecoder | None) -> StreamFacts | None:
        with self._lock:
            if file.key in self._facts:
                return self._facts[file.key]
        if video is not None:
            facts = facts_of(video)
        else:
            with POOL.borrow(file, 0) as decoder:
                facts = facts_of(decoder)
        self._keep(file, facts)
        return facts

    def _keep(self, file: VideoFile, facts: StreamFacts | None) -> None:
        with self._lock:
            if len(self._facts) >= _MAX_FACTS:
                self._facts.clear()
            self._facts[file.key] = facts

    def _warn(self, what: str, reason: str) -> None:
        """Warn, once for each kind of reason."""
        kind = re.sub(r"'[^']*'|\d+", "", reason)
        with self._lock:
            is_new = kind not in self._warned
            self._warned.add(kind)
        if is_new:
            warn(f"{what}: {reason}", stacklevel=2)

    def sweep(self, *, waits: bool = True) -> None:
        """Take the decoders of closed owners from their files, as `EngineDecoders.sweep` does."""
        self._decoders.sweep(waits=waits)

    def close(self) -> None:
        """Close the decoders. Idempotent."""
        self._decoders.close()


def shared_engines(gpu: Any) -> ClipsOnEngines:
    """Return the decoders of an open GPU that operators share, until its runs end."""
    found: ClipsOnEngines = gpu.share(ClipsOnEngines)
    return found


def in_host_memory(clip: Any) -> npt.NDArray[Any]:
    """Return a clip as an array in host memory."""
    if isinstance(clip, np.ndarray):
        return clip
    dtype = DType(clip.dtype).numpy
    return np.frombuffer(clip.to_host(), dtype).reshape(clip.shape)


def as_result(clip: Any, *, on_gpu: bool) -> Any:
    """Return a clip as the run takes it."""
    if isinstance(clip, (np.ndarray, BaseException)):
        return clip
    if not on_gpu:
        return in_host_memory(clip)
    strides = tuple(int(np.prod(clip.shape[i + 1 :])) * DType(clip.dtype).size for i in range(len(clip.shape)))
    return GpuArray(clip.pointer, clip.shape, strides, DType(clip.dtype), clip, None)
