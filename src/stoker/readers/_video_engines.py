# SPDX-License-Identifier: Apache-2.0
"""Clips that a GPU's video engines decode, for a reader."""

from __future__ import annotations

import re
import threading
from collections.abc import Hashable, Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from ..contract.errors import is_system_failure
from ..contract.warning import warn
from ..device.video_engines import VideoEngines
from ..native import _native
from ..settings import default_threads
from ..video.clip import ClipPixels
from ..video.engine_decoder import EngineDecoders, NotForEnginesError, StreamFacts, facts_of
from ..video.pool import POOL, VideoFile
from ..video.pyav import name_of

Wanted = TypeVar("Wanted", bound=Hashable)
_MAX_FACTS = 1 << 16  # files whose facts are kept


class ClipsOnEngines:
    """Decoders of a reader on the video engines of a GPU. Threads may use it concurrently.

    What the engines do not decode is left to the CPU, with a warning for the first file of each reason.

    Args:
        gpu: the open GPU.
        pixels: form of the pixels.

    Attributes:
        decoded: number of clips that the engines have decoded.
    """

    def __init__(self, gpu: Any, pixels: ClipPixels) -> None:
        engines = VideoEngines(gpu)
        self._pixels = pixels
        self._decoders = EngineDecoders(engines, default_threads())
        self._lock = threading.Lock()
        self._facts: dict[int, StreamFacts | None] = {}  # None: the file is not for the engines
        self._warned = set[str]()
        self.decoded = 0

    def decode(
        self, file: VideoFile, clips: Mapping[Wanted, npt.NDArray[np.int64]]
    ) -> dict[Wanted, _native.gpu.DeviceArray]:
        """Decode clips of one file. Return those that the engines have decoded.

        Args:
            file: the file.
            clips: numbers of the frames of each clip, -1 for constant frames.

        Raises:
            OSError: the system fails.
        """
        try:
            facts = self._facts_of(file)
            if facts is None:
                return {}
            index = POOL.index(file)
            first = min(int(f[f >= 0].min()) for f in clips.values())
            with self._decoders.borrow(file.number, file.source, index, facts, first) as decoder:
                pixels = decoder.decode(self._pixels, list(clips.values()))
        except NotForEnginesError as reason:
            self._leave(file, str(reason))
            return {}
        except _native.gpu.DeviceFailure as refusal:
            self._leave(file, str(refusal))
            return {}
        except Exception as error:
            if is_system_failure(error):
                raise
            pixels = [error for _ in clips]
        found = dict(zip(clips, pixels, strict=True))
        failure = next((x for x in found.values() if isinstance(x, Exception)), None)
        if isinstance(failure, NotForEnginesError):
            self._leave(file, str(failure))
        elif failure is not None:  # damage: if the CPU cannot decode it either, the row has the CPU's error
            self._warn(
                f"clips of {name_of(file.source)} are decoded on the CPU, as the video engines fail", f"{failure}"
            )
        decoded = {w: x for w, x in found.items() if not isinstance(x, Exception)}
        with self._lock:
            self.decoded += len(decoded)
        return decoded

    def _facts_of(self, file: VideoFile) -> StreamFacts | None:
        with self._lock:
            if file.number in self._facts:
                return self._facts[file.number]
        with POOL.borrow(file, 0) as decoder:
            facts = facts_of(decoder)
        self._keep(file, facts)
        return facts

    def _keep(self, file: VideoFile, facts: StreamFacts | None) -> None:
        with self._lock:
            if len(self._facts) >= _MAX_FACTS:
                self._facts.clear()
            self._facts[file.number] = facts

    def _leave(self, file: VideoFile, reason: str) -> None:
        """Leave a file to the CPU."""
        self._keep(file, None)
        what = f"{name_of(file.source)} is decoded on the CPU, and so are other files for the same reason"
        self._warn(what, reason)

    def _warn(self, what: str, reason: str) -> None:
        """Warn, once for each kind of reason."""
        kind = re.sub(r"'[^']*'|\d+", "", reason)
        with self._lock:
            is_new = kind not in self._warned
            self._warned.add(kind)
        if is_new:
            warn(f"{what}: {reason}", stacklevel=2)

    def close(self) -> None:
        """Close the decoders. Idempotent."""
        self._decoders.close()
