# SPDX-License-Identifier: Apache-2.0
"""Storages for the native reader: whole files, byte ranges of files, byte ranges of memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError
from ..contract.lowering import Lowering
from ..contract.step import ALLOCATES, FileAccess, Value
from ..contract.storage import Bools, RecordForm, RecordLocation, Storage
from ..contract.text import reason_of
from ..contract.types import DType
from ..native import _native
from ._file_state import FileState

GIVES_FILE = FileAccess(gives_file=True)  # a codec may read only a part of the file instead
Numbers = Sequence[int] | npt.NDArray[Any]


class NativeStorage(Storage):
    """Storage over a native table of records."""

    table: _native.Records

    @property
    def files(self) -> _native.Records | None:
        return self.table

    def __len__(self) -> int:
        return len(self.table)

    def content(self, record: int) -> bytes:
        return self.table.content(record)

    def lower(self, c: Lowering, reader: int, dtype: DType, item: tuple[int, ...], layout: str) -> Value:
        data = c.opaque(dtype, 1 + len(item), layout, (None, *item))
        c.emit("read_range", [], [data], attrs=(self.table, reader, *([item] if item else [])), memory=ALLOCATES)
        return data


class FileStorage(NativeStorage):
    """Whole files: record ``i`` is file ``i``.

    Args:
        table: native table of file names.

    Attributes:
        is_read_in_parts: rows read parts of the files only, so that whole files are not read ahead.
    """

    def __init__(self, table: _native.FileTable) -> None:
        self.table: _native.FileTable = table
        self.is_read_in_parts = False

    @property
    def files(self) -> _native.Records | None:
        return None if self.is_read_in_parts else self.table

    @classmethod
    def of(cls, paths: Sequence[str | os.PathLike[str]], root: str = "") -> FileStorage:
        """Return the storage of files by their paths.

        Args:
            paths: the paths, absolute or relative to ``root``.
            root: folder that relative paths begin in; "" for the current folder.
        """
        return cls(file_table(paths, root))

    def chosen(self, records: Sequence[int]) -> FileStorage:
        """Return the storage of some of the files, in another order.

        Args:
            records: numbers of the files.
        """
        return FileStorage.of([_path(self.table, record) for record in records])

    def locate(self, record: int) -> RecordLocation:
        return RecordLocation(_path(self.table, record))

    def absent(self) -> Bools | None:
        return None

    def lower(self, c: Lowering, reader: int, dtype: DType, item: tuple[int, ...], layout: str) -> Value:
        if dtype != DType.UINT8 or item:
            return super().lower(c, reader, dtype, item, layout)
        data = c.opaque(dtype, 1, layout)
        c.emit("read_range", [], [data], attrs=(self.table, reader), memory=ALLOCATES, file=GIVES_FILE)
        return data

    def joined(self, others: Sequence[FileStorage]) -> FileStorage:
        return FileStorage(_native.FileTable.joined([self.table, *(o.table for o in others)]))


class RangeStorage(NativeStorage):
    """Byte ranges of files: members of tar files, records of a container, slices of one large file.

    Memory: 20 bytes per record. Files stay open between rows while there are descriptors, so a file that is replaced
    during that time is read in its old form. A file that is opened after a change is an error of its rows.

    Args:
        files: paths of the files, prefixed with ``root``.
        file: number of the file, per record.
        offset: first byte, per record.
        length: number of bytes, per record.
        absent: mask of samples that lack the record; by default all have it.
        root: prefix of the paths.
        form: form in which the records are stored.
        states: states of the files when the ranges were found; None for a file that may be in any state.

    Raises:
        ArgumentError: the numbers do not fit together.
    """

    def __init__(
        self, files: Sequence[str | os.PathLike[str]], file: Numbers, offset: Numbers, length: Numbers,
        absent: npt.ArrayLike | None = None, *, root: str = "", form: RecordForm = RecordForm.STORED,
        states: Sequence[FileState | None] | None = None,
    ) -> None:  # fmt: skip
        self._files = file_table(files, root)
        known = [value for state in states or () for value in ((-1, 0) if state is None else state[:2])]
        self._joins: list[tuple[tuple[RangeStorage, ...], RangeStorage]] = []
        facts = np.asarray(known, np.int64) if known else None
        self.table: _native.RangeTable = _table(
            lambda f, o, n, c: _native.RangeTable(self._files, f, o, n, c, facts), file, offset, length, absent, form
        )

    def locate(self, record: int) -> RecordLocation:
        file, offset, length, codec = self.table[record]
        return (
            RecordLocation() if codec == RecordForm.ABSENT else RecordLocation(_path(self._files, file), offset, length)
        )

    def absent(self) -> Bools | None:
        return _absent(self.table)

    def joined(self, others: Sequence[RangeStorage]) -> RangeStorage:
        # Columns that share a storage share the joined one, so that a record is read once for all of them.
        for parts, known in self._joins:
            if len(parts) == len(others) and all(a is b for a, b in zip(parts, others, strict=True)):
                return known
        storage = RangeStorage.__new__(RangeStorage)
        self._joins.append((tuple(others), storage))
        storage._joins = []
        storage._files = _native.FileTable.joined([self._files, *(o._files for o in others)])
        storage.table = _native.RangeTable.joined(storage._files, [self.table, *(o.table for o in others)])
        return storage

    def close(self) -> None:
        self.table.close()


class MemoryStorage(NativeStorage):
    """Byte ranges of memory owned by Python code: bytes, arrays, a mapped file. The memory must not change.

    Args:
        buffers: objects with contiguous memory.
        buffer: number of the buffer, per record.
        offset: first byte, per record.
        length: number of bytes, per record.
        absent: mask of samples that lack the record; by default all have it.
        name: origin of the bytes, for messages.

    Raises:
        ArgumentError: a record is not inside its buffer, or the numbers do not fit together.
    """

    def __init__(
        self, buffers: Sequence[Any], buffer: Numbers, offset: Numbers, length: Numbers,
        absent: npt.ArrayLike | None = None, *, name: str = "memory",
    ) -> None:  # fmt: skip
        views = tuple(_bytes_of(b) for b in buffers)
        self._names = [name] * len(views)
        self.table: _native.MemoryTable = _table(
            lambda *ranges: _native.MemoryTable(views, *ranges), buffer, offset, length, absent
        )

    @classmethod
    def of(cls, items: Sequence[Any], *, name: str = "memory") -> MemoryStorage:
        """Return the storage of objects in memory.

        Args:
            items: one object with contiguous memory per record; None for an absent record.
            name: origin of the bytes, for messages.
        """
        lengths = [0 if i is None else len(_bytes_of(i)) for i in items]
        buffers = [b"" if i is None else i for i in items]
        nothing = np.zeros(len(items), np.uint64)
        return cls(buffers, np.arange(len(items)), nothing, lengths, [i is None for i in items], name=name)

    def locate(self, record: int) -> RecordLocation:
        buffer, offset, length, codec = self.table[record]
        return RecordLocation() if codec == RecordForm.ABSENT else RecordLocation(self._names[buffer], offset, length)

    def absent(self) -> Bools | None:
        return _absent(self.table)

    def joined(self, others: Sequence[MemoryStorage]) -> MemoryStorage:
        storage = MemoryStorage.__new__(MemoryStorage)
        storage._names = [name for one in (self, *others) for name in one._names]
        storage.table = _native.MemoryTable.joined((self.table, *(o.table for o in others)))
        return storage


def file_table(paths: Sequence[str | os.PathLike[str]], root: str = "") -> _native.FileTable:
    """Return the native table of files. ``paths`` are absolute, or relative to ``root``.

    Raises:
        ArgumentError: a name contains a zero byte.
    """
    if root and any(map(os.path.isabs, paths)):
        root, paths = "", [os.path.join(root, path) for path in paths]
    base = os.path.join(os.fsencode(root), b"") if root else b""
    names = b"".join(os.fsencode(p) + b"\0" for p in paths)
    return packed_file_table(base, names, len(paths))


def packed_file_table(root: bytes, names: bytes | bytearray, count: int) -> _native.FileTable:
    """Return the native table of ``count`` files. ``names`` has a zero after each name."""
    packed = np.frombuffer(names, np.uint8) if names else np.empty(0, np.uint8)
    ends = np.flatnonzero(packed == 0)
    if len(ends) != count:
        raise ArgumentError("expected names of files without zero bytes")
    offsets = np.zeros(len(ends) + 1, np.uint64)
    offsets[1:] = ends + 1
    return _native.FileTable(root, packed, offsets)


def checked_ranges(
    file: Numbers,
    offset: Numbers,
    length: Numbers,
    absent: npt.ArrayLike | None,
    form: RecordForm = RecordForm.STORED,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64], npt.NDArray[np.uint64], npt.NDArray[np.uint8]]:
    """Return (file, offset, length, codec) per record, in the form of the native tables.

    Raises:
        ArgumentError: the ranges are invalid.
    """
    numbers = [
        _whole("file", file, np.uint32),
        _whole("offset", offset, np.uint64),
        _whole("length", length, np.uint64),
    ]
    count = len(numbers[0])
    gone = np.zeros(count, bool) if absent is None else np.asarray(absent, bool)
    if any(n.shape != (count,) for n in (*numbers, gone)):
        raise ArgumentError(
            f"expected one file, offset and length per record, got {[len(n) for n in numbers]}, and {len(gone)} absent"
        )
    codec = np.where(gone, np.uint8(RecordForm.ABSENT), np.uint8(form))
    return numbers[0], numbers[1], numbers[2], codec


def _table(
    make: Any, file: Numbers, offset: Numbers, length: Numbers, absent: npt.ArrayLike | None,
    form: RecordForm = RecordForm.STORED,
) -> Any:  # fmt: skip
    ranges = checked_ranges(file, offset, length, absent, form)
    try:
        return make(*ranges)
    except ValueError as error:
        raise ArgumentError(str(error)) from None


def _whole(name: str, values: Numbers, dtype: Any) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ArgumentError(f"expected whole numbers as `{name}`, one per record, got {array.dtype} {array.shape}")
    if array.size and (int(array.min()) < 0 or int(array.max()) > np.iinfo(dtype).max):
        raise ArgumentError(
            f"expected numbers from 0 to {np.iinfo(dtype).max} as `{name}`, got {array.min()} to {array.max()}"
        )
    return np.ascontiguousarray(array, dtype)


def _bytes_of(item: Any) -> npt.NDArray[np.uint8]:
    if isinstance(item, bytes) and not item:
        return np.empty(0, np.uint8)
    try:
        return np.frombuffer(item, np.uint8)
    except (TypeError, ValueError, BufferError) as error:
        raise ArgumentError(
            f"expected bytes or contiguous memory, got {type(item).__name__}: {reason_of(error)}"
        ) from None


def _path(table: _native.FileTable, index: int) -> str:
    return table[index].decode(errors="surrogateescape")


def _absent(table: _native.RangeTable | _native.MemoryTable) -> Bools | None:
    found = table.absent()
    return found if found.any() else None
