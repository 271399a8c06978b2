# SPDX-License-Identifier: Apache-2.0
"""Pool of decoders and frame indexes: the one owner of open decoders in a process.

A decoder keeps a file descriptor and several decoded pictures, so the pool bounds the number of idle ones, and the
bytes of indexes, over all readers and all videos that the program has open. What was evicted is made again when a call
needs it.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from ..contract.errors import DataError
from ..settings import default_threads
from .decoder import VideoDecoder
from .frame_index import FrameIndex
from .pyav import Source, name_of

MAX_INDEXES, MAX_INDEX_BYTES = 1024, 128 << 20


class VideoOwner:
    """Holder of videos, such as a reader. Its decoders and indexes are dropped when it is closed."""

    def __init__(self) -> None:
        self.is_closed = False


VideoKey = tuple[VideoOwner, int]


@dataclass(frozen=True)
class VideoFile:
    """Video that an owner uses.

    Attributes:
        owner: the owner. Videos of different owners are different, even if they are in the same file.
        number: number among the videos of the owner.
        source: path of the file, or its contents.
        find_index: function that returns the frame index.
        state: size and modification time that the file must have; None: those at the time when it is indexed.
        reduction: number by which the height and the width of the frames are divided.
    """

    owner: VideoOwner
    number: int
    source: Source = field(compare=False)
    find_index: Callable[[], FrameIndex] = field(compare=False)
    state: tuple[int, int] | None = field(compare=False, default=None)
    reduction: int = field(compare=False, default=1)

    @property
    def key(self) -> VideoKey:
        """Return the facts that identify the video, without its contents."""
        return self.owner, self.number


class DecoderPool:
    """Idle decoders and indexes of the videos that are in use. Threads may use it concurrently."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: OrderedDict[VideoFile, list[VideoDecoder]] = OrderedDict()  # least recently used first
        self._indexes: OrderedDict[VideoFile, FrameIndex] = OrderedDict()
        self._index_bytes = 0

    def reset(self) -> None:
        """Forget everything, in a child process, which shares the positions of open files with its parent."""
        idle = [decoder for each in self._idle.values() for decoder in each]
        self.__dict__ = DecoderPool().__dict__  # with a lock that no thread holds
        _close(idle)

    @contextlib.contextmanager
    def borrow(self, file: VideoFile, first: int) -> Iterator[VideoDecoder]:
        """Lend a decoder: of the idle ones of the file that which reaches frame ``first`` first, or a new one.

        Raises:
            DataError: the file is no video, or it has changed.
            OSError: the file cannot be read.
        """
        decoder = self._taken(file, first)
        decoder = decoder or VideoDecoder(file.source, self.index(file), reduction=file.reduction)
        try:
            yield decoder
        except BaseException:  # its state is unknown
            decoder.close()
            raise
        self._release(file, decoder)

    def index(self, file: VideoFile) -> FrameIndex:
        """Return the frame index of a file.

        Raises:
            DataError: the file is no video, or it has changed.
            OSError: the file cannot be read.
        """
        with self._lock:
            known = self._indexes.get(file)
            if known is not None:
                self._indexes.move_to_end(file)
                return known
        index = file.find_index()
        if file.state not in (None, index.state):
            raise DataError(f"{name_of(file.source)} changed after it was opened")
        with self._lock:
            if file not in self._indexes and not file.owner.is_closed:
                self._indexes[file] = index
                self._index_bytes += index.size_bytes
            while len(self._indexes) > MAX_INDEXES or (self._index_bytes > MAX_INDEX_BYTES and len(self._indexes) > 1):
                self._index_bytes -= self._indexes.popitem(last=False)[1].size_bytes
        return index

    def close(self, owner: VideoOwner) -> None:
        """Close the decoders of an owner. Those that are lent are closed when they come back. Idempotent."""
        owner.is_closed = True
        with self._lock:
            dropped = self._sweep()
        _close(dropped)

    def abandon(self, owner: VideoOwner) -> None:
        """Close the decoders of an owner that is garbage. The collector may run in a thread that holds the lock."""
        owner.is_closed = True
        if self._lock.acquire(blocking=False):  # else the next call of `_release` or `close` drops them
            try:
                dropped = self._sweep()
            finally:
                self._lock.release()
            _close(dropped)

    def _taken(self, file: VideoFile, first: int) -> VideoDecoder | None:
        with self._lock:
            idle = self._idle.get(file)
            if not idle:
                return None
            best = min(idle, key=lambda d: d.cost(first))
            idle.remove(best)
            if not idle:
                del self._idle[file]
            return best

    def _release(self, file: VideoFile, decoder: VideoDecoder) -> None:
        with self._lock:
            self._idle.setdefault(file, []).append(decoder)
            self._idle.move_to_end(file)
            dropped = self._sweep()
            while (count := sum(map(len, self._idle.values()))) > 2 and count > 2 * default_threads():
                oldest = next(iter(self._idle))
                dropped.append(self._idle[oldest].pop(0))
                if not self._idle[oldest]:
                    del self._idle[oldest]
        _close(dropped)

    def _sweep(self) -> list[VideoDecoder]:
        """Remove everything of closed owners, and return the decoders to close. The caller has the lock."""
        dropped = []
        for file in [f for f in self._idle if f.owner.is_closed]:
            dropped += self._idle.pop(file)
        for file in [f for f in self._indexes if f.owner.is_closed]:
            self._index_bytes -= self._indexes.pop(file).size_bytes
        return dropped


def _close(decoders: list[VideoDecoder]) -> None:
    for decoder in decoders:
        decoder.close()


POOL = DecoderPool()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL.reset)
