# SPDX-License-Identifier: Apache-2.0
"""A file's bytes, and how they travel between processes.

The bytes are in private memory, in a worker's segment, or on disk, named by a file reference.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ....native import _native
from . import file_refs, segment
from .segment import Bytes


class _FileBuffers:
    """Reused memory for files of this process: new memory would have to be cleared by the system."""

    def __init__(self) -> None:
        self.blocks = _native.recipe.block_pool(_MAX_BUFFERS)
        # A forked process shares this memory with its parent as long as neither writes to it.
        self._inherited: list[Any] = []

    def after_fork(self) -> None:
        self._inherited.append(self.blocks)
        self.blocks = _native.recipe.block_pool(_MAX_BUFFERS)


_MAX_BUFFERS = 256
_buffers = _FileBuffers()
os.register_at_fork(after_in_child=_buffers.after_fork)


class Source:
    """A file's bytes. There is one object per opened file, so that views of the same file share it."""

    __slots__ = ("__weakref__", "_data", "_location", "_ref", "origin")

    def __init__(self, data: Bytes | None) -> None:
        self._data = data
        self._location: tuple[segment.Segment, int, int] | None = None
        self._ref: bytes | None = None
        self.origin: Any = None  # the batch that opened it; see `materialize/retry.py`
        _native.recipe.untrack(self)  # see `ir/recipe.py`

    @classmethod
    def from_bytes(cls, data: Any) -> Source:
        """Return a source of these bytes. They are copied unless they are ``bytes``."""
        source = cls(None)
        source._location = segment.write_bytes(source, data)
        if source._location is None:
            source._data = np.frombuffer(data if isinstance(data, bytes) else bytes(data), np.uint8)
        return source

    @classmethod
    def from_array(cls, data: Bytes) -> Source:
        """Return a source of a copy of an array's bytes, in a segment or in reused memory."""
        source = cls(None)
        source._location = segment.write_bytes(source, data)
        if source._location is None:
            source._data = _buffers.blocks.take(data.size)
            source._data[:] = data
        return source

    @classmethod
    def from_file(cls, fd: int, size: int) -> Source | None:
        """Return a source of the first ``size`` bytes of an open file; None if the file is shorter."""
        source = cls(None)
        return source if source._copy(fd, size) else None

    @classmethod
    def from_ref(cls, ref: bytes) -> Source:
        """Return a source that reads a referenced file when its image is materialized; see `file_refs.py`."""
        source = cls(None)
        source._ref = ref
        return source

    @classmethod
    def from_open_file(cls, ref: bytes, fd: int) -> Source:
        """Return a source like :meth:`from_ref`, in the process that has opened the file as ``fd``."""
        source = cls.from_ref(ref)
        file_refs.keep_open(source, fd)
        return source

    @property
    def ref(self) -> bytes | None:
        """Return the file reference; None if the bytes are in memory."""
        return self._ref

    def share(self) -> None:
        """Move private bytes into the segment of the batch that this worker is fetching, if there is one."""
        if self._data is not None:
            self._location = segment.write_bytes(self, self._data)
            if self._location is not None:
                self._data = None

    @property
    def data(self) -> Bytes:
        """Return the bytes, as uint8.

        Raises:
            StaleFileRef: a referenced file has changed, or is gone.
        """
        if self._data is not None:
            return self._data
        if self._ref is not None:
            return file_refs.read(self._ref)
        assert self._location is not None
        memory, first, size = self._location
        return memory.read(first, size)

    def _copy(self, fd: int, size: int) -> bool:
        """Hold the first ``size`` bytes of an open file; return False if the file is shorter."""
        self._location = segment.write_file(self, fd, size)
        if self._location is None:
            self._data = _buffers.blocks.read(fd, size)
        return self._location is not None or self._data is not None

    def load_from(self, fd: int) -> bool:
        """Replace the reference by the bytes of the file, open as ``fd``; return False if the file was written to."""
        ref = self._ref
        if ref is None or not self._copy(fd, os.fstat(fd).st_size):
            return False
        # Checked after the copy, because another process may write to the file during the copy.
        if not _native.recipe.is_file_ref_of(ref, fd):
            self._data = self._location = None
            return False
        self._ref = None
        return True

    def hold_privately(self) -> None:
        """Move the bytes to private memory."""
        if self._ref is not None:
            self._data = file_refs.read_if_unchanged(self._ref)
            if self._data is not None:
                self._ref = None
        elif self._data is None:
            self._data = self.data.copy()
            self._location = None

    def __reduce__(self) -> tuple[Any, ...]:
        ref = self._ref  # read once: another thread may move the bytes to private memory
        if ref is not None:
            return _referenced_source, (ref, self.origin)
        place = self._location
        if place is None:
            return _private_source, (self.data.tobytes(), self.origin)
        return _shared_source, (*place, self.origin)


def _private_source(data: bytes, origin: Any) -> Source:
    source = Source(np.frombuffer(data, np.uint8))
    source.origin = origin
    return source


def _referenced_source(ref: bytes, origin: Any) -> Source:
    source = Source.from_ref(ref)
    source.origin = origin
    return source


def _shared_source(memory: segment.Segment, first: int, size: int, origin: Any) -> Source:
    source = Source(memory.read(first, size))
    source.origin = origin
    return source
