# SPDX-License-Identifier: Apache-2.0
"""The files of a worker's batch in memory that the main process can read: written as they are read, and mapped there.

The memory is anonymous: its descriptor travels with the recipes, and it is given back when nobody holds it any more. A
worker does not map it, so that a batch's files lie in the memory of one process only.
"""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from collections import deque
from multiprocessing.reduction import DupFd
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from . import descriptors

_EARLIER = 2  # batches that may still be on their way out when another one is fetched


Bytes = npt.NDArray[np.uint8]


class Held(Protocol):
    """What has its bytes in a segment."""

    def take_back(self) -> None:
        """Hold the bytes privately from now on."""


class Segment:
    """Memory that grows by what is written to it. Travels to another process as a descriptor."""

    def __init__(self, fd: int, end: int = 0) -> None:
        self._fd = fd
        self._end = end
        self._mapped: Bytes | None = None
        self._latest: tuple[int, Bytes] | None = None  # whose pixels are asked for next, if any are
        self._holders: list[tuple[weakref.ref[Any], int]] = []
        self.fetched = False  # whether it goes to the process whose loader fetched it
        weakref.finalize(self, os.close, fd).atexit = False

    def write(self, holder: Held, data: Any) -> int:
        """Append bytes; where they begin. The room of holders that are gone already is used again.

        Raises:
            OSError: there is no more memory.
        """
        first, rest = self._begin(), memoryview(data)
        at = first
        while rest:
            done = os.pwrite(self._fd, rest, at)
            rest, at = rest[done:], at + done
        self._keep(holder, first, at)
        self._latest = (first, np.frombuffer(data, np.uint8)) if isinstance(data, bytes) else None
        return first

    def copy(self, holder: Held, fd: int, size: int) -> int | None:
        """Append the first ``size`` bytes of an open file, which no process maps meanwhile; where they begin.

        None if the file has fewer.

        Raises:
            OSError: there is no more memory, or the file is of a kind that cannot be copied so.
        """
        first = self._begin()
        os.lseek(self._fd, first, os.SEEK_SET)
        done = 0
        while done < size:
            count = os.sendfile(self._fd, fd, done, size - done)
            if count == 0:
                return None
            done += count
        self._keep(holder, first, first + size)
        self._latest = None
        return first

    def _begin(self) -> int:
        while self._holders and self._holders[-1][0]() is None:
            self._end = self._holders.pop()[1]
        return self._end

    def _keep(self, holder: Held, first: int, end: int) -> None:
        self._holders.append((weakref.ref(holder), first))
        self._end, self._mapped = end, None

    def read(self, first: int, size: int) -> Bytes:
        """Bytes that were written; they cannot be changed."""
        if self._latest is not None and self._latest[0] == first:
            return self._latest[1]
        if self._mapped is None:
            self._mapped = np.frombuffer(mmap.mmap(self._fd, self._end, prot=mmap.PROT_READ), np.uint8)
        return self._mapped[first : first + size]

    def retire(self) -> None:
        """Let the few that still hold a part of it, because a data set keeps images, not hold all of it."""
        for reference, _ in self._holders:
            holder = reference()
            if holder is not None:
                holder.take_back()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.fetched and _sender is not None:
            try:
                return _sent, (*_sender.send(self._fd), self._end)
            except OSError:  # too many are under way: on request then
                pass
        return _arrived, (DupFd(self._fd), self._end)


def _arrived(descriptor: Any, end: int) -> Segment:
    return Segment(descriptor.detach(), end)


def _sent(token: int, number: int, end: int) -> Segment:
    return Segment(descriptors.take(token, number), end)


class _Now(threading.local):
    segment: Segment | None = None

    def __init__(self) -> None:
        self.earlier: deque[Segment] = deque()


_now = _Now()
_in_worker = False
_sender: descriptors.Sender | None = None


def in_worker(sender: descriptors.Sender | None) -> None:
    """What this process records goes to another one."""
    global _in_worker, _sender
    _in_worker = hasattr(os, "memfd_create")
    _sender = sender


def begin() -> None:
    """This thread fetches a batch; a worker's files go into a segment from now on."""
    if not _in_worker:
        return
    try:
        _now.segment = Segment(os.memfd_create("stoker-files", os.MFD_CLOEXEC))
    except OSError:  # too many open files, as a rule: bytes travel inside of the message then
        _now.segment = None


def end() -> None:
    """The batch has been fetched."""
    if _now.segment is not None:
        _now.segment._latest = None
        _now.segment.fetched = True
        _now.earlier.append(_now.segment)
        _now.segment = None
    if len(_now.earlier) > _EARLIER:
        _now.earlier.popleft().retire()


def place(holder: Held, data: Any) -> tuple[Segment, int, int] | None:
    """Where the bytes of ``holder`` have been put, if a worker is fetching a batch: (segment, first, size)."""
    segment = _now.segment
    if segment is None:
        return None
    try:
        return segment, segment.write(holder, data), memoryview(data).nbytes
    except OSError:  # as above; not the data set's error
        return None


def place_file(holder: Held, fd: int, size: int) -> tuple[Segment, int, int] | None:
    """As :func:`place`, of an open file's first ``size`` bytes."""
    segment = _now.segment
    if segment is None:
        return None
    try:
        first = segment.copy(holder, fd, size)
    except OSError:  # as above
        return None
    return None if first is None else (segment, first, size)
