# SPDX-License-Identifier: Apache-2.0
"""Shared memory with the files of a worker's batch: the worker writes files as it reads them, the main process maps it.

The memory is anonymous. Its descriptor travels with the recipes, and the system releases the memory with its last
owner. A worker does not map the memory, so that a batch's files occupy the memory of one process only.
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

_BATCHES_IN_FLIGHT = 2  # batches that may still be in flight when another one is fetched


Bytes = npt.NDArray[np.uint8]


class ByteOwner(Protocol):
    """Object whose bytes are in a segment."""

    def hold_privately(self) -> None:
        """Copy the bytes to private memory."""


class Segment:
    """Memory that grows with each write. It is pickled as a descriptor."""

    def __init__(self, fd: int, end: int = 0) -> None:
        self._fd = fd
        self._end = end
        self._mapped: Bytes | None = None
        self._latest: tuple[int, Bytes] | None = None  # bytes of the last write, which are often read next
        self._holders: list[tuple[weakref.ref[Any], int]] = []
        self.is_fetched = False  # whether it is sent to the process whose loader fetched it
        weakref.finalize(self, os.close, fd).atexit = False

    def write(self, holder: ByteOwner, data: Any) -> int:
        """Append bytes and return their offset. Space at the end whose owners are gone is reused.

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

    def copy(self, holder: ByteOwner, fd: int, size: int) -> int | None:
        """Append the first ``size`` bytes of an open file and return their offset; None if the file is shorter.

        No process may have the segment mapped during the copy.

        Raises:
            OSError: there is no more memory, or the file is of a kind that ``sendfile`` does not support.
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

    def _keep(self, holder: ByteOwner, first: int, end: int) -> None:
        self._holders.append((weakref.ref(holder), first))
        self._end, self._mapped = end, None

    def read(self, first: int, size: int) -> Bytes:
        """Return bytes that were written, read-only."""
        if self._latest is not None and self._latest[0] == first:
            return self._latest[1]
        if self._mapped is None:
            self._mapped = np.frombuffer(mmap.mmap(self._fd, self._end, prot=mmap.PROT_READ), np.uint8)
        return self._mapped[first : first + size]

    def retire(self) -> None:
        """Copy the bytes of the remaining owners to private memory.

        A data set that keeps a few images would keep the whole segment otherwise.
        """
        for reference, _ in self._holders:
            holder = reference()
            if holder is not None:
                holder.hold_privately()

    def __reduce__(self) -> tuple[Any, ...]:
        if self.is_fetched and _sender is not None:
            try:
                return _from_sender, (*_sender.send(self._fd), self._end)
            except OSError:  # too many are in flight: use Python's own way
                pass
        return _from_descriptor, (DupFd(self._fd), self._end)


def _from_descriptor(descriptor: Any, end: int) -> Segment:
    return Segment(descriptor.detach(), end)


def _from_sender(token: int, number: int, end: int) -> Segment:
    return Segment(descriptors.take(token, number), end)


class _ThreadState(threading.local):
    segment: Segment | None = None

    def __init__(self) -> None:
        self.earlier: deque[Segment] = deque()


_thread = _ThreadState()
_in_worker = False
_sender: descriptors.Sender | None = None


def enter_worker(sender: descriptors.Sender | None) -> None:
    """Write this process's files into segments, whose descriptors ``sender`` sends; called in a worker."""
    global _in_worker, _sender
    _in_worker = hasattr(os, "memfd_create")
    _sender = sender


def begin_batch() -> None:
    """Begin a batch on this thread. A worker's files are written into a new segment."""
    if not _in_worker:
        return
    try:
        _thread.segment = Segment(os.memfd_create("stoker-files", os.MFD_CLOEXEC))
    except OSError:  # usually too many open files: the bytes travel inside the message
        _thread.segment = None


def end_batch() -> None:
    """End the batch of this thread."""
    if _thread.segment is not None:
        _thread.segment._latest = None
        _thread.segment.is_fetched = True
        _thread.earlier.append(_thread.segment)
        _thread.segment = None
    if len(_thread.earlier) > _BATCHES_IN_FLIGHT:
        _thread.earlier.popleft().retire()


def write_bytes(holder: ByteOwner, data: Any) -> tuple[Segment, int, int] | None:
    """Write the bytes of ``holder`` into the current batch's segment; return (segment, offset, size), or None without
    one."""
    segment = _thread.segment
    if segment is None:
        return None
    try:
        return segment, segment.write(holder, data), memoryview(data).nbytes
    except OSError:  # no memory: the bytes travel in the message, and the data set sees no error
        return None


def write_file(holder: ByteOwner, fd: int, size: int) -> tuple[Segment, int, int] | None:
    """Write the first ``size`` bytes of an open file into a segment; see :func:`write_bytes`."""
    segment = _thread.segment
    if segment is None:
        return None
    try:
        first = segment.copy(holder, fd, size)
    except OSError:  # no memory, or no regular file
        return None
    return None if first is None else (segment, first, size)
