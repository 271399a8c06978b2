# SPDX-License-Identifier: Apache-2.0
"""Check of Parquet files, Arrow files and Lance data sets: groups of rows are read and validated, images decoded."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._image_formats import find_format
from ..contract.errors import ArgumentError
from ..contract.extras import import_extra
from ..contract.text import reason_of
from ..readers._arrow import pyarrow
from ..readers._row_groups import open_parquet
from ..readers.lance import open_folder
from .image_check import Checked
from .record_check import Container, check_part, in_record
from .survey import Finding, Remark

_LANCE_ROWS = 64  # rows that are read together


class _Table(Container):
    """File with rows in groups."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.begins = [0]  # number of the first row of each group, and of all rows
        self._images: set[str] = set()  # columns whose first value is an image

    def _set_groups(self, rows: list[int]) -> None:
        """Take the number of rows of each group, and find the columns of images in the first one."""
        self.begins = list(itertools.accumulate(rows, initial=0))
        self.records = self.begins[-1]
        if not rows:
            return
        try:
            table = self._read(0)
        except (OSError, pyarrow("tables").ArrowException):  # the check of the group reports the damage
            return
        for name, column in zip(table.schema.names, table.columns, strict=True):
            first = next((value for _, value in _contents(column)), b"")
            if find_format(first[:32]) is not None:
                self._images.add(name)

    def __len__(self) -> int:
        return len(self.begins) - 1

    @abstractmethod
    def _read(self, group: int) -> Any:
        """Return a group, a ``pyarrow.Table`` or a ``pyarrow.RecordBatch``.

        Raises:
            OSError: it is damaged, or the file cannot be read.
            pyarrow.ArrowException: it is damaged.
        """

    def check(self, unit: int) -> Checked:
        begin, end = self.begins[unit], self.begins[unit + 1]
        try:
            table = self._read(unit)
            table.validate(full=True)
        except (OSError, pyarrow("tables").ArrowException) as error:
            text = f"rows {begin} to {end - 1}: {reason_of(error)}"
            return [Finding(self.path, Remark.RECORD, text, record=begin)], Counter()
        findings: list[Finding] = []
        warnings: Counter[str] = Counter()
        for name, column in zip(table.schema.names, table.columns, strict=True):
            for row, value in _contents(column):
                found, warned = check_part(self.path, name, value, name in self._images)
                findings += [in_record(one, begin + row, name) for one in found]
                warnings += warned
        return findings, warnings


class _ParquetTable(_Table):
    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file = open_parquet(str(path))
        rows = [self._file.metadata.row_group(g).num_rows for g in range(self._file.metadata.num_row_groups)]
        self._set_groups(rows)

    def _read(self, group: int) -> Any:
        pq = import_extra("pyarrow.parquet", "parquet", "Parquet files")
        with (
            self.path.open("rb") as stream,
            pq.ParquetFile(stream, metadata=self._file.metadata, page_checksum_verification=True) as reader,
        ):
            return reader.read_row_group(group, use_threads=False)

    def close(self) -> None:
        return  # a group opens the file again


class _ArrowTable(_Table):
    """Arrow file, or a stream, as Hugging Face's data sets keep it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        pa = pyarrow("Arrow files")
        self._batches: list[Any] = []
        self._map = pa.memory_map(str(path))
        try:
            for batch in _batches_of(self._map):
                self._batches.append(batch)
        except pa.ArrowException as error:
            if not self._batches:
                raise ArgumentError(reason_of(error)) from None
            text = f"record batch {len(self._batches)} and all that follow it cannot be read: {reason_of(error)}"
            rows = sum(batch.num_rows for batch in self._batches)
            self.faults.append(Finding(path, Remark.RECORD, text, record=rows))
        self._set_groups([batch.num_rows for batch in self._batches])

    def _read(self, group: int) -> Any:
        return self._batches[group]

    def close(self) -> None:
        self._batches = []
        self._map.close()


class _LanceTable(_Table):
    """Newest version of a Lance data set."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._source = open_folder(str(path))
        try:
            count = int(self._source.count_rows())
        except (OSError, ValueError) as error:
            raise ArgumentError(f"cannot count the rows: {reason_of(error)}") from None
        self._set_groups([min(_LANCE_ROWS, count - begin) for begin in range(0, count, _LANCE_ROWS)])

    def _read(self, group: int) -> Any:
        try:
            return self._source.take(list(range(self.begins[group], self.begins[group + 1])))
        except ValueError as error:
            raise OSError(reason_of(error)) from error

    def close(self) -> None:
        return  # the library has no open files between calls


def open_lance(path: Path) -> Container:
    """Open the folder of a Lance data set.

    Raises:
        ArgumentError: the data set is damaged as a whole.
        UnsupportedError: the package ``lance`` is not installed.
    """
    return _LanceTable(path)


def open_table(path: Path) -> Container:
    """Open a Parquet file or an Arrow file, by its first bytes.

    Raises:
        ArgumentError: the file is damaged from its begin on, or at its end, where Parquet has its table of contents.
        UnsupportedError: pyarrow is not installed.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        is_parquet = file.read(4) == b"PAR1"
    return _ParquetTable(path) if is_parquet or path.suffix.lower() == ".parquet" else _ArrowTable(path)


def _batches_of(mapped: Any) -> Iterator[Any]:
    pa = pyarrow("Arrow files")
    is_file = mapped.read(6) == b"ARROW1"
    mapped.seek(0)
    if not is_file:
        yield from pa.ipc.open_stream(mapped)
        return
    reader = pa.ipc.open_file(mapped)
    for number in range(reader.num_record_batches):
        yield reader.get_batch(number)


def _contents(column: Any) -> Iterator[tuple[int, bytes]]:
    """Yield number and bytes of the rows of a column that may hold files; nothing for other columns."""
    types = pyarrow("tables").types
    kind = column.type
    is_struct = types.is_struct(kind) and any(kind.field(i).name == "bytes" for i in range(kind.num_fields))
    if not (is_struct or types.is_binary(kind) or types.is_large_binary(kind)):
        return
    for row, value in enumerate(column):
        content = value.as_py()
        if is_struct and content is not None:
            content = content["bytes"]
        if isinstance(content, bytes) and content:
            yield row, content
