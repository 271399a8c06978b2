# SPDX-License-Identifier: Apache-2.0
"""``readers.array_record``: records of ArrayRecord files."""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..contract.argument import arg
from ..contract.columns import DataSet
from ..contract.errors import ArgumentError, DataError
from ..contract.extras import import_extra
from ..contract.storage import RecordLocation
from ..contract.text import printable, reason_of
from ._columns import Bytes, fingerprint
from ._containers import ContainerReader, paths_of
from ._file_state import FileState, require_unchanged, state_of
from ._library_records import LibraryStorage

_MOST_OPEN = 64  # files with an open reader
# A row costs one read of its chunk, without threads and buffers that read ahead.
_OPTIONS = "readahead_buffer_size:0,max_parallelism:0"
_BUFFER_BYTES = 1 << 15


class ArrayRecordReader(ContainerReader, name="readers.array_record"):
    """Read records of ArrayRecord files. Output: the bytes, uint8 ``(N,)``.

    Threads of the pipeline call the library for the rows of the next batches. Write the files with the option
    ``group_size:1``, as the library recommends for random access: of larger groups, a row costs the decoding of its
    whole group.
    """

    positional = ("paths",)
    outputs = 1
    result_neutral = (*ContainerReader.result_neutral, "paths")
    paths = arg("object", doc="ArrayRecord file, or a list of files.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        paths_of("paths", args["paths"])

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Read the footers of the files.

        Raises:
            ArgumentError: there are no records, or a file is no ArrayRecord file.
            UnsupportedError: the package ``array_record`` is not installed.
            OSError: the operating system fails.
        """
        files = [open_file(path) for path in paths_of("paths", args["paths"])]
        storage = ArrayRecords(files)
        if not len(storage):
            raise ArgumentError(f"expected records in {len(files)} files such as '{printable(files[0][0])}', got none")
        names = "\0".join(os.path.basename(path) for path, *_ in files)
        digest = fingerprint(names, np.asarray([count for _, _, count, _ in files], np.int64))
        size = max(group for *_, group in files)
        note = (
            f"the files have groups of {size} records, and a row decodes its whole group. Write them with the option "
            "`group_size:1`"
        )
        return DataSet((Bytes("data", storage),), digest, None, (note,) if size > 1 else ())


def open_file(path: str) -> tuple[str, FileState, int, int]:
    """Return the path of a file, its state, its number of records, and the number of records in a group.

    Raises:
        ArgumentError: there is no such file, or it is no ArrayRecord file.
    """
    if not os.path.isfile(path):
        raise ArgumentError(f"expected a file, there is none at '{printable(path)}'")
    state = state_of(path)
    reader = _open_reader(path)
    try:
        is_good = reader.ok()
        count = int(reader.num_records()) if is_good else 0
        group = re.search(r"group_size:(\d+)", reader.writer_options_string() or "") if is_good else None
        reader.close()  # raises the reason if the file is no ArrayRecord file
    except RuntimeError as error:
        raise ArgumentError(
            f"expected an ArrayRecord file, got another format, or a file that is cut off, in '{printable(path)}': "
            f"{reason_of(error)}"
        ) from None
    if not is_good:
        raise ArgumentError(f"expected an ArrayRecord file, got another format in '{printable(path)}'")
    return path, state, count, int(group[1]) if group else 1


def _open_reader(path: str) -> Any:
    module = import_extra(
        "array_record.python.array_record_module", "array_record", "ArrayRecord files", distribution="array-record"
    )
    return module.ArrayRecordReader(path, _OPTIONS, file_reader_buffer_size=_BUFFER_BYTES)


class ArrayRecords(LibraryStorage):
    """Records of files.

    Args:
        files: path, state, number of records and group size of each file.
    """

    def __init__(self, files: Sequence[tuple[str, FileState, int, int]]) -> None:
        super().__init__("stoker-array-record", "all ArrayRecord files")
        self._files = files
        self._ends = np.cumsum([count for _, _, count, _ in files])
        self._readers: OrderedDict[int, Any] = OrderedDict()  # least recently used first
        self._readers_lock = threading.Lock()

    def __len__(self) -> int:
        return int(self._ends[-1])

    def _find(self, record: int) -> tuple[int, int]:
        """Return the file of a record, and its number in the file."""
        file = int(np.searchsorted(self._ends, record, side="right"))
        return file, record - (int(self._ends[file - 1]) if file else 0)

    def locate(self, record: int) -> RecordLocation:
        file, number = self._find(record)
        return RecordLocation(f"{self._files[file][0]} (record {number})")

    def read(self, records: Sequence[int]) -> Sequence[bytes]:
        wanted: dict[int, list[int]] = {}
        for record in records:  # in rising order, so the files are too
            file, number = self._find(record)
            wanted.setdefault(file, []).append(number)
        found: list[bytes] = []
        for file, numbers in wanted.items():
            try:
                found += self._reader(file).read(numbers)
            except RuntimeError as error:
                where = f"record {numbers[0]} of '{printable(self._files[file][0])}'"
                raise DataError(f"cannot read {where}: {reason_of(error)}") from error
        return found

    def _reader(self, file: int) -> Any:
        """Return the reader of a file. A reader that leaves the table is closed when its last call ends."""
        with self._readers_lock:
            reader = self._readers.pop(file, None)
            if reader is None:
                path, state, count, _ = self._files[file]
                require_unchanged(path, state)
                reader = _open_reader(path)
                if not reader.ok() or reader.num_records() != count:
                    raise DataError(f"expected {count} records in '{printable(path)}', got another number")
            self._readers[file] = reader
            while len(self._readers) > _MOST_OPEN:
                self._readers.popitem(last=False)
            return reader

    def close(self) -> None:
        super().close()
        with self._readers_lock:
            self._readers.clear()
