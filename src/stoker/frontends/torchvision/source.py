# SPDX-License-Identifier: Apache-2.0
"""A file's bytes: held here, in a worker's segment or where they are on disk, and how they travel between processes."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ...native import _native
from . import segment, told
from .segment import Bytes


class _Files:
    """Memory of files in this process, used again for other files: the system clears what it gives anew."""

    def __init__(self) -> None:
        self.blocks = _native.recipe.blocks(_KEPT_FILES)
        self._inherited: list[
            Any
        ] = []  # whose memory a forked process shares with its parent as long as it is left alone

    def after_fork(self) -> None:
        self._inherited.append(self.blocks)
        self.blocks = _native.recipe.blocks(_KEPT_FILES)


_KEPT_FILES = 256
_files = _Files()
os.register_at_fork(after_in_child=_files.after_fork)


class Source:
    """A file's bytes. One object per file that was opened: its views find each other by it."""

    __slots__ = ("__weakref__", "_data", "_place", "_told", "origin")

    def __init__(self, data: Bytes | None) -> None:
        self._data = data
        self._place: tuple[segment.Segment, int, int] | None = None
        self._told: bytes | None = None
        self.origin: Any = None  # the sample that opened it; see `retry.py`
        _native.recipe.untrack(self)  # see `recipe.py`

    @classmethod
    def keep(cls, data: Any) -> Source:
        """A source of these bytes, which the caller may change afterwards if they are no ``bytes``."""
        source = cls(None)
        source._place = segment.place(source, data)
        if source._place is None:
            source._data = np.frombuffer(data if isinstance(data, bytes) else bytes(data), np.uint8)
        return source

    @classmethod
    def of_file(cls, fd: int, size: int) -> Source | None:
        """A source of the first ``size`` bytes of an open file; None if it has fewer."""
        source = cls(None)
        return source if source._copy(fd, size) else None

    @classmethod
    def of_told(cls, what: bytes) -> Source:
        """A file that is read where its image is made; see `told.py`."""
        source = cls(None)
        source._told = what
        return source

    @classmethod
    def opened(cls, what: bytes, fd: int) -> Source:
        """The same in the process that has opened the file, as ``fd``."""
        source = cls.of_told(what)
        told.note(source, fd)
        return source

    @property
    def told(self) -> bytes | None:
        """What tells of the file; None if its bytes are here, or on their way."""
        return self._told

    def place(self) -> None:
        """Put bytes that are held privately to where another process can read them, if a worker is fetching a batch."""
        if self._data is not None:
            self._place = segment.place(self, self._data)
            if self._place is not None:
                self._data = None

    @property
    def data(self) -> Bytes:
        """The bytes, as uint8.

        Raises:
            Moved: a file that was told of is not there any more.
        """
        if self._data is not None:
            return self._data
        if self._told is not None:
            return told.read(self._told)
        assert self._place is not None
        memory, first, size = self._place
        return memory.read(first, size)

    def _copy(self, fd: int, size: int) -> bool:
        """Hold the first ``size`` bytes of an open file; False if it has fewer."""
        self._place = segment.place_file(self, fd, size)
        if self._place is None:
            self._data = _files.blocks.read(fd, size)
        return self._place is not None or self._data is not None

    def take_in(self, fd: int) -> bool:
        """Hold the bytes of a file that was told of, and is open as ``fd``; False: it has been written to."""
        what = self._told
        if what is None or not self._copy(fd, os.fstat(fd).st_size):
            return False
        if not _native.recipe.is_told_open(what, fd):  # asked after the copy: it may have been written to meanwhile
            self._data = self._place = None
            return False
        self._told = None
        return True

    def take_back(self) -> None:
        """Hold the bytes privately, if they were elsewhere."""
        if self._told is not None:
            self._data = told.read_if_there(self._told)
            if self._data is not None:
                self._told = None
        elif self._data is None:
            self._data = self.data.copy()
            self._place = None

    def __reduce__(self) -> tuple[Any, ...]:
        what = self._told  # once: another thread may take the bytes back
        if what is not None:
            return _told_source, (what, self.origin)
        place = self._place
        if place is None:
            return _own_source, (self.data.tobytes(), self.origin)
        return _placed_source, (*place, self.origin)


def _own_source(data: bytes, origin: Any) -> Source:
    source = Source(np.frombuffer(data, np.uint8))
    source.origin = origin
    return source


def _told_source(what: bytes, origin: Any) -> Source:
    source = Source.of_told(what)
    source.origin = origin
    return source


def _placed_source(memory: segment.Segment, first: int, size: int, origin: Any) -> Source:
    source = Source(memory.read(first, size))
    source.origin = origin
    return source
