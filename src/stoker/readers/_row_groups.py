# SPDX-License-Identifier: Apache-2.0
"""Rows of Parquet files: row groups are decoded by threads, and kept in memory within a limit."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError, DataError
from ..contract.extras import import_extra
from ..contract.storage import Bools, RecordLocation
from ..contract.text import printable, reason_of
from ..remote.copies import ObjectFile
from ..remote.store import RemoteStore
from ._arrow import ArrowType, Ranges, chunk_ranges, pyarrow
from ._fetching import Asked, RequestedStorage
from ._file_state import FileState, require_unchanged, state_of
from ._library_records import RequestThreads


@dataclass(frozen=True)
class ParquetFile:
    """File as it was when the pipeline was built.

    Attributes:
        path: the file.
        metadata: its ``pyarrow.parquet.FileMetaData``.
        schema: its ``pyarrow.Schema``.
        state: size, modification time and inode; zeros for an object, whose store asks for this version.
        store: the store, if the file is an object.
    """

    path: str
    metadata: Any
    schema: Any
    state: FileState
    store: RemoteStore | None = None


def open_parquet(path: str, store: RemoteStore | None = None) -> ParquetFile:
    """Read the footer of a file, or of an object of the store.

    Raises:
        ArgumentError: there is no such file, or it is no Parquet file.
        UnsupportedError: pyarrow is not installed.
    """
    pq = import_extra("pyarrow.parquet", "parquet", "Parquet files")
    try:
        if store is not None:
            with pq.ParquetFile(ObjectFile(store, path)) as file:
                return ParquetFile(path, file.metadata, file.schema_arrow, (0, 0, 0), store)
        with open(path, "rb") as stream, pq.ParquetFile(stream) as file:
            return ParquetFile(path, file.metadata, file.schema_arrow, state_of(stream.fileno()))
    except (FileNotFoundError, IsADirectoryError):
        raise ArgumentError(f"expected a file, there is none at '{printable(path)}'") from None
    except pyarrow("Parquet files").ArrowException as error:
        raise ArgumentError(f"expected a Parquet file, got '{printable(path)}': {reason_of(error)}") from None


def read_group(file: ParquetFile, group: int, columns: Sequence[str]) -> Any:
    """Return columns of a row group, a ``pyarrow.Table``.

    Raises:
        DataError: the file has changed since the pipeline was built, or the row group is damaged.
        OSError: the file cannot be read.
    """
    pq = import_extra("pyarrow.parquet", "parquet", "Parquet files")
    with ObjectFile(file.store, file.path) if file.store else open(file.path, "rb") as stream:
        if file.store is None:
            require_unchanged(file.path, file.state, state_of(stream.fileno()))
        try:
            with pq.ParquetFile(stream, metadata=file.metadata) as reader:
                return reader.read_row_group(group, columns=list(columns), use_threads=False)
        except (pyarrow("Parquet files").ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            where = f"row group {group} of '{printable(file.path)}'"
            raise DataError(f"cannot read {where}: {type(error).__name__}: {reason_of(error)}") from error


class RowGroups:
    """Row groups of files, decoded by threads.

    Each request decodes the row groups of its rows, or finds them in memory, and copies the rows. So memory holds the
    rows of the batches in flight and ``limit_bytes`` of row groups, whatever the order.

    Args:
        files: the files.
        kinds: types of the columns that are read, by name.
        limit_bytes: memory for decoded row groups that no request works on.
    """

    def __init__(self, files: Sequence[ParquetFile], kinds: dict[str, ArrowType], limit_bytes: int) -> None:
        self.files = files
        self._kinds = kinds
        self._limit_bytes = limit_bytes
        self._groups = [(f, g) for f, file in enumerate(files) for g in range(file.metadata.num_row_groups)]
        rows = [files[f].metadata.row_group(g).num_rows for f, g in self._groups]
        self._ends = np.cumsum(np.asarray(rows, np.int64))
        self._lock = threading.Lock()
        self._decoded: OrderedDict[int, Future[DecodedRows]] = OrderedDict()  # least recently used first
        self._threads = RequestThreads("stoker-parquet")
        self.decodes = 0

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @property
    def rows_per_group(self) -> int:
        """Return the most rows that a row group has."""
        return int(np.diff(self._ends, prepend=0).max(initial=1))

    def locate(self, row: int) -> tuple[int, int, int]:
        """Return the file of a row, its row group, and the row's number in the group."""
        at = int(np.searchsorted(self._ends, row, side="right"))
        file, group = self._groups[at]
        return file, group, row - (int(self._ends[at - 1]) if at else 0)

    def fetch(self, column: str, rows: Sequence[int]) -> Asked:
        """Begin to read the values of rows and return a future for each."""
        asked: Asked = {row: Future() for row in rows}
        wanted = np.asarray(rows, np.int64)
        group_of = np.searchsorted(self._ends, wanted, side="right")
        for group in np.unique(group_of):
            first = int(self._ends[group - 1]) if group else 0
            part = {int(row) - first: asked[int(row)] for row in wanted[group_of == group]}
            self._threads.submit(self._copy, int(group), column, part, futures=list(part.values()))
        return asked

    def _copy(self, group: int, column: str, part: dict[int, Future[bytes]]) -> None:
        """Give each future its row."""
        wanted = {row: future for row, future in part.items() if future.set_running_or_notify_cancel()}
        if not wanted:
            return
        try:
            decoded = self._decode(group)
        except Exception as error:  # noqa: BLE001 - the rows carry it
            for future in wanted.values():
                future.set_exception(error)
            return
        for row, future in wanted.items():
            try:
                future.set_result(decoded.row(column, row))
            except Exception as error:  # noqa: BLE001 - the row carries it
                future.set_exception(error)

    def _decode(self, group: int) -> DecodedRows:
        """Return a row group from memory; decode it, or wait for the thread that does."""
        with self._lock:
            known = self._decoded.get(group)
            if known is not None:
                self._decoded.move_to_end(group)
            else:
                own: Future[DecodedRows] = Future()
                self._decoded[group] = own
                self.decodes += 1
        if known is not None:
            return known.result()
        try:
            file, number = self._groups[group]
            table = read_group(self.files[file], number, list(self._kinds))
            found = DecodedRows.of(table, self._kinds)
        except BaseException as error:
            with self._lock:
                self._decoded.pop(group, None)
            own.set_exception(error)
            raise
        own.set_result(found)
        self._evict()
        return found

    def _evict(self) -> None:
        with self._lock:
            complete = [(g, f.result().size_bytes) for g, f in self._decoded.items() if f.done()]
            total = sum(size for _, size in complete)
            for group, size in complete:
                if total <= self._limit_bytes:
                    return
                del self._decoded[group]
                total -= size

    def close(self) -> None:
        """End the threads and connections; idempotent."""
        self._threads.close()
        for store in {id(file.store): file.store for file in self.files if file.store is not None}.values():
            store.close()
        with self._lock:
            self._decoded.clear()


class DecodedRows:
    """Rows of an Arrow table in memory: byte ranges of its columns."""

    def __init__(self, columns: dict[str, list[Ranges]]) -> None:
        self._columns = columns
        self._ends = {name: np.cumsum([len(p.begin) for p in parts]) for name, parts in columns.items()}
        buffers = {id(p.buffer): p.buffer.size for parts in columns.values() for p in parts if p.buffer is not None}
        self.size_bytes = sum(buffers.values())

    @classmethod
    def of(cls, table: Any, kinds: Mapping[str, ArrowType]) -> DecodedRows:
        """Return the rows of columns of a ``pyarrow.Table``."""
        return cls({n: [chunk_ranges(n, c, k) for c in table.column(n).chunks] for n, k in kinds.items()})

    def row(self, column: str, row: int) -> bytes:
        """Return the bytes of a row.

        Raises:
            DataError: the row has a path in place of bytes.
        """
        ends = self._ends[column]
        at = int(np.searchsorted(ends, row, side="right"))
        part = self._columns[column][at]
        inside = row - (int(ends[at - 1]) if at else 0)
        if part.absent[inside] and part.paths and part.paths[inside] is not None:
            raise DataError(f"expected bytes in the column {column!r}, got only a path, {part.paths[inside]!r}")
        length, begin = int(part.length[inside]), int(part.begin[inside])
        return bytes(memoryview(part.buffer)[begin : begin + length]) if length else b""


class RowGroupStorage(RequestedStorage):
    """Values of one column of row groups.

    Args:
        groups: the row groups.
        column: name of the column.
    """

    def __init__(self, groups: RowGroups, column: str) -> None:
        super().__init__()
        self._groups, self._column = groups, column

    def __len__(self) -> int:
        return len(self._groups)

    def locate(self, record: int) -> RecordLocation:
        file, group, row = self._groups.locate(record)
        return RecordLocation(f"{self._groups.files[file].path} (row group {group}, row {row})")

    def absent(self) -> Bools | None:
        return None  # known only when a row group is decoded: the column is optional

    def joined(self, others: Sequence[Any]) -> RowGroupStorage:
        raise ArgumentError("expected readers that can be joined: give all Parquet files to one reader as `paths`")

    def _begin(self, records: Sequence[int]) -> Asked:
        return self._groups.fetch(self._column, records)

    def _checked(self, record: int, content: bytes) -> bytes | BaseException:
        return content

    def close(self) -> None:
        self.cancel()
        self._groups.close()


def column_of_files(files: Sequence[ParquetFile], name: str) -> list[Any]:
    """Return all parts of a column, of type ``pyarrow.Array``."""
    groups = [(file, group) for file in files for group in range(file.metadata.num_row_groups)]
    return [chunk for file, group in groups for chunk in read_group(file, group, [name]).column(name).chunks]


def sizes_of(files: Sequence[ParquetFile]) -> npt.NDArray[np.int64]:
    """Return rows and bytes of each row group, int64 ``(groups, 2)``."""
    found = [
        (file.metadata.row_group(g).num_rows, file.metadata.row_group(g).total_byte_size)
        for file in files
        for g in range(file.metadata.num_row_groups)
    ]
    return np.asarray(found, np.int64).reshape(-1, 2)
