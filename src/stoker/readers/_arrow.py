# SPDX-License-Identifier: Apache-2.0
"""Columns of Arrow tables: their types, and the bytes of their rows as ranges of mapped files or of memory.

Arrow stores the values of a column of bytes, texts or lists one after the other, with offsets. So a row is a byte range
of the column's buffer. A buffer that is a part of a mapped file gives a range of the file.
"""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.columns import Column
from ..contract.errors import ArgumentError
from ..contract.extras import import_extra
from ..contract.text import brief, printable
from ..contract.types import DType
from ._columns import Bytes, Values
from ._storages import FileStorage, MemoryStorage, RangeStorage

Longs = npt.NDArray[np.int64]


def pyarrow(purpose: str) -> Any:
    """Return the module ``pyarrow``.

    Raises:
        UnsupportedError: it is not installed.
    """
    return import_extra("pyarrow", "parquet", purpose)


@dataclass(frozen=True)
class ArrowType:
    """Type of a column's rows.

    Attributes:
        dtype: type of the elements.
        depth: axes with offsets or fixed extents in Arrow: 0 for a number, 1 for bytes, texts and lists.
        item: extents of the axes after the first one.
        has_paths: a row is a struct of bytes and a path, as Hugging Face stores images and audio files.
    """

    dtype: DType
    depth: int
    item: tuple[int, ...] = ()
    has_paths: bool = False


def arrow_type(name: str, declared: Any) -> ArrowType:
    """Return the type of a column.

    Args:
        name: name of the column, for messages.
        declared: its type, a ``pyarrow.DataType``.

    Raises:
        ArgumentError: rows of this type are no arrays of numbers.
    """
    pa = pyarrow("Arrow data")
    shape = getattr(declared, "shape", None) if isinstance(declared, pa.BaseExtensionType) else None
    plain = _plain(declared)
    if _is_bytes(plain):
        return ArrowType(DType.UINT8, 1)
    if pa.types.is_struct(plain) and {plain.field(i).name for i in range(plain.num_fields)} == {"bytes", "path"}:
        return ArrowType(DType.UINT8, 1, has_paths=True)
    depth, item = 0, plain
    while _is_list(item):
        depth, item = depth + 1, _plain(item.value_type)
    dtype = _number_type(item)
    extents = tuple(shape or ())
    is_regular = depth <= 1 or (len(extents) == depth and all(isinstance(n, int) for n in extents[1:]))
    if dtype is not None and is_regular and (depth == 0 or dtype != DType.BOOL):  # lists of bools are bits
        return ArrowType(dtype, depth, extents[1:])
    raise ArgumentError(
        f"expected a column of bytes, texts, images, numbers, lists of numbers or arrays with declared extents, got "
        f"{name!r} of the type {brief(str(declared))}"
    )


def label_type(name: str, kind: ArrowType) -> ArrowType:
    """Return the type of a column of class labels, int32.

    Args:
        name: name of the column, for messages.
        kind: its type in the data set.

    Raises:
        ArgumentError: the column has no whole numbers.
    """
    if kind.depth or kind.dtype.numpy.kind not in "iu":
        raise ArgumentError(f"expected a column of whole numbers as `label`, got {name!r} of {kind.dtype}")
    return ArrowType(DType.INT32, 0)


def _plain(declared: Any) -> Any:
    """Return a type without extensions and dictionaries."""
    pa = pyarrow("Arrow data")
    while True:
        if isinstance(declared, pa.BaseExtensionType):
            declared = declared.storage_type
        elif pa.types.is_dictionary(declared):
            declared = declared.value_type
        else:
            return declared


def _is_bytes(plain: Any) -> bool:
    t = pyarrow("Arrow data").types
    views = (t.is_binary_view(plain), t.is_string_view(plain)) if hasattr(t, "is_binary_view") else ()
    return any((t.is_binary(plain), t.is_large_binary(plain), t.is_string(plain), t.is_large_string(plain),
                t.is_fixed_size_binary(plain), *views))  # fmt: skip


def _is_list(plain: Any) -> bool:
    t = pyarrow("Arrow data").types
    return bool(t.is_list(plain) or t.is_large_list(plain) or t.is_fixed_size_list(plain))


def _number_type(plain: Any) -> DType | None:
    t = pyarrow("Arrow data").types
    if not (t.is_integer(plain) or t.is_floating(plain) or t.is_boolean(plain)):
        return None
    return DType.of(np.dtype(plain.to_pandas_dtype()))


# ---- ranges of one chunk ----


@dataclass
class Ranges:
    """Byte ranges of the rows of a chunk.

    Attributes:
        buffer: the values of the chunk; None if there are none.
        begin: first byte of each row in the buffer.
        length: bytes of each row.
        absent: mask of the rows without a value.
        paths: path of the file of each row that has no bytes; empty if the column has no paths.
    """

    buffer: Any
    begin: Longs
    length: Longs
    absent: npt.NDArray[np.bool_]
    paths: Sequence[str | None] = ()


def chunk_ranges(name: str, chunk: Any, kind: ArrowType) -> Ranges:
    """Return the byte ranges of the rows of an array with offsets.

    Args:
        name: name of the column, for messages.
        chunk: a ``pyarrow.Array``.
        kind: type of its rows; ``depth`` is at least 1.

    Raises:
        ArgumentError: a list has elements without a value.
    """
    pa = pyarrow("Arrow data")
    chunk = _plain_chunk(chunk)
    if kind.has_paths:
        names = [chunk.type.field(i).name for i in range(chunk.type.num_fields)]
        parts = dict(zip(names, chunk.flatten(), strict=True))  # `flatten` applies the struct's own missing rows
        found = _bytes_ranges(_plain_chunk(parts["bytes"]))
        if found.absent.any():
            found.paths = parts["path"].cast(pa.string()).to_pylist()
        return found
    if _is_bytes(chunk.type):
        return _bytes_ranges(chunk)
    absent = _absent(chunk)
    rows = np.arange(len(chunk) + 1, dtype=np.int64)
    begin, end, values = rows[:-1], rows[1:], chunk
    for level in range(kind.depth):
        if level and values.null_count:
            raise _missing_element(name)
        begin, end, values = _child_spans(values, begin, end)
    if values.null_count:
        raise _missing_element(name)
    size = kind.dtype.size
    length = np.where(absent, 0, (end - begin) * size)
    return Ranges(values.buffers()[-1], (begin + values.offset) * size, length, absent)


def _missing_element(name: str) -> ArgumentError:
    return ArgumentError(f"expected numbers in all elements of the lists of {name!r}, got elements without a value")


def _plain_chunk(chunk: Any) -> Any:
    """Return an array without extensions, dictionaries and views, which have no ranges."""
    pa = pyarrow("Arrow data")
    while isinstance(chunk.type, pa.BaseExtensionType):
        chunk = chunk.storage
    if pa.types.is_dictionary(chunk.type):
        chunk = chunk.dictionary_decode()
    if hasattr(pa.types, "is_binary_view") and (
        pa.types.is_binary_view(chunk.type) or pa.types.is_string_view(chunk.type)
    ):
        chunk = chunk.cast(pa.large_binary())
    return chunk


def _absent(chunk: Any) -> npt.NDArray[np.bool_]:
    if not chunk.null_count:
        return np.zeros(len(chunk), bool)
    mask: npt.NDArray[np.bool_] = chunk.is_null().to_numpy(zero_copy_only=False)
    return mask


def _bytes_ranges(chunk: Any) -> Ranges:
    pa = pyarrow("Arrow data")
    absent, data = _absent(chunk), chunk.buffers()[-1]
    if pa.types.is_fixed_size_binary(chunk.type):
        width = chunk.type.byte_width
        begin = (np.arange(len(chunk), dtype=np.int64) + chunk.offset) * width
        return Ranges(data, begin, np.where(absent, 0, np.int64(width)), absent)
    is_large = pa.types.is_large_binary(chunk.type) or pa.types.is_large_string(chunk.type)
    ends = _offsets(chunk, is_large=is_large)
    return Ranges(data, ends[:-1], np.where(absent, 0, np.diff(ends)), absent)


def _offsets(chunk: Any, *, is_large: bool) -> Longs:
    """Return the offsets of an array's rows, one more than rows."""
    buffer = chunk.buffers()[1]
    if not len(chunk) or buffer is None:
        return np.zeros(len(chunk) + 1, np.int64)
    width = np.dtype(np.int64 if is_large else np.int32)
    return np.frombuffer(buffer, width, len(chunk) + 1, chunk.offset * width.itemsize).astype(np.int64)


def _child_spans(values: Any, begin: Longs, end: Longs) -> tuple[Longs, Longs, Any]:
    """Return the spans of elements of lists' values for spans of lists, and the values."""
    pa = pyarrow("Arrow data")
    values = _plain_chunk(values)
    child = _plain_chunk(values.values)
    if pa.types.is_fixed_size_list(values.type):
        width = values.type.list_size
        return (begin + values.offset) * width, (end + values.offset) * width, child
    ends = _offsets(values, is_large=pa.types.is_large_list(values.type))
    return ends[begin], ends[end], child


# ---- mapped files ----


@dataclass(frozen=True)
class _Mapping:
    begin: int
    end: int
    offset: int  # of `begin` in the file
    device: tuple[int, int]
    inode: int
    path: str


@dataclass
class MappedFiles:
    """Mappings of files into the memory of this process, as the system lists them; none on systems without a list."""

    _mappings: list[_Mapping] = field(default_factory=list)

    @classmethod
    def of_process(cls) -> MappedFiles:
        """Return the current mappings."""
        try:
            with open("/proc/self/maps", "rb") as file:
                lines = file.read().splitlines()
        except OSError:
            return cls()
        found = [_mapping(line.split(None, 5)) for line in lines if line.count(b"/")]
        return cls([m for m in found if m is not None])

    def file_of(self, address: int, size: int) -> tuple[str, int] | None:
        """Return the path and the byte of a range of addresses; None if it is no part of a file that still exists."""
        at = bisect.bisect_right(self._mappings, address, key=lambda m: m.begin) - 1
        found = self._mappings[at] if at >= 0 else None
        if found is None or address + size > found.end:
            return None
        try:
            status = os.stat(found.path)
        except OSError:
            return None
        device = (os.major(status.st_dev), os.minor(status.st_dev))
        offset = found.offset + address - found.begin
        is_same = (device, status.st_ino) == (found.device, found.inode) and offset + size <= status.st_size
        return (found.path, offset) if is_same else None


def _mapping(parts: list[bytes]) -> _Mapping | None:
    """Return a line of the system's list; None if it is not about a file."""
    if len(parts) < 6 or not parts[5].startswith(b"/"):
        return None
    begin, end = (int(x, 16) for x in parts[0].split(b"-"))
    major, minor = (int(x, 16) for x in parts[3].split(b":"))
    path = os.fsdecode(parts[5].replace(b"\\012", b"\n"))
    return _Mapping(begin, end, int(parts[2], 16), (major, minor), int(parts[4]), path)


# ---- columns ----


def arrow_column(
    name: str, chunks: Sequence[Any], kind: ArrowType, rows: Longs | None, mapped: MappedFiles
) -> tuple[Column, str | npt.NDArray[Any]]:
    """Return a column of an Arrow table, and the facts about its rows that decide the data set's fingerprint.

    Args:
        name: name of the column.
        chunks: its parts, of type ``pyarrow.Array``.
        kind: type of its rows.
        rows: number of the row of each sample; None for all rows in order.
        mapped: files that the chunks may be parts of.

    Raises:
        ArgumentError: a file of a row does not exist, or the column has rows in memory and rows in other files.
    """
    if kind.depth == 0:
        numbers = number_column(name, chunks, kind.dtype, rows)
        return numbers, numbers.values
    parts = [chunk_ranges(name, chunk, kind) for chunk in chunks]
    storage, facts = _storage_of(name, [p for p in parts if len(p.begin)], rows, mapped)
    return Bytes(name, storage, kind.dtype, kind.item, optional=storage.absent() is not None), facts


def number_column(name: str, chunks: Iterable[Any], dtype: DType, rows: Longs | None) -> Values:
    """Return a column of single numbers, in memory: arrays ``(1,)``, without elements where the number is missing."""
    kept = [np.zeros(0, dtype.numpy)]
    gone = [np.zeros(0, bool)]
    for chunk in chunks:
        plain = _plain_chunk(chunk)
        gone.append(_absent(plain))
        filled = plain.fill_null(False if dtype == DType.BOOL else 0) if plain.null_count else plain
        numbers = np.asarray(filled.to_numpy(zero_copy_only=False))
        kept.append(numbers.astype(dtype.numpy, copy=False))
        if dtype.numpy.kind in "iu" and not np.array_equal(kept[-1], numbers):
            raise ArgumentError(f"expected numbers that {dtype} holds in the column {name!r}, got larger ones")
    table, absent = np.concatenate(kept), np.concatenate(gone)
    if rows is not None:
        table, absent = table[rows], absent[rows]
    return Values(name, table[:, None], absent=absent, optional=bool(absent.any()))


def _storage_of(
    name: str, parts: Sequence[Ranges], rows: Longs | None, mapped: MappedFiles
) -> tuple[FileStorage | RangeStorage | MemoryStorage, str | npt.NDArray[Any]]:
    part = np.repeat(np.arange(len(parts)), [len(p.begin) for p in parts])
    begin = np.concatenate([np.zeros(0, np.int64), *(p.begin for p in parts)])
    length = np.concatenate([np.zeros(0, np.int64), *(p.length for p in parts)])
    absent = np.concatenate([np.zeros(0, bool), *(p.absent for p in parts)])
    paths: list[str | None] = []
    if any(p.paths for p in parts):
        paths = [path for p in parts for path in (p.paths or [None] * len(p.begin))]
    if rows is not None:
        part, begin, length, absent = part[rows], begin[rows], length[rows], absent[rows]
        paths = [paths[i] for i in rows] if paths else []
    in_files = np.zeros(len(part), bool)
    if paths:
        in_files = absent & np.asarray([path is not None for path in paths])
    if len(part) and in_files.all():
        files = [p for p in paths if p is not None]
        return FileStorage.of(files), "\0".join(map(os.path.basename, files))
    places = [_place(p, mapped) for p in parts]
    if all(place is not None for place in places):
        files_of_parts = [p for p in places if p is not None]
        return _in_files(name, files_of_parts, part, begin, length, absent, paths, in_files), length
    if in_files.any():
        raise ArgumentError(
            f"expected the rows of {name!r} in memory or in files, got both: write the data set with "
            "`save_to_disk`, and read that"
        )
    empty = np.empty(0, np.uint8)
    buffers = [empty if p.buffer is None else p.buffer for p in parts]
    return MemoryStorage(buffers, part, begin, length, absent, name=f"column {name!r} in memory"), length


def _place(part: Ranges, mapped: MappedFiles) -> tuple[str, int] | None:
    """Return the file of a chunk's values and their first byte in it; None if they are only in memory."""
    if part.buffer is None or not part.buffer.size:
        return None if part.length.any() else ("", 0)
    return mapped.file_of(part.buffer.address, part.buffer.size)


def _in_files(
    name: str, places: Sequence[tuple[str, int]], part: Longs, begin: Longs, length: Longs,
    absent: npt.NDArray[np.bool_], paths: Sequence[str | None], in_files: npt.NDArray[np.bool_],
) -> RangeStorage:  # fmt: skip
    """Return the storage of rows that are ranges of mapped files, and of rows that are files."""
    numbers: dict[str, int] = {}
    file_of_part = np.asarray([numbers.setdefault(path, len(numbers)) for path, _ in places], np.int64)
    start = np.asarray([offset for _, offset in places], np.int64)
    file = file_of_part[part] if len(places) else np.zeros(len(part), np.int64)
    offset = start[part] + begin if len(places) else begin
    length, absent = length.copy(), absent & ~in_files
    for row in np.flatnonzero(in_files):
        path = paths[int(row)] or ""
        try:
            length[row] = os.path.getsize(path)
        except OSError as error:
            raise ArgumentError(
                f"expected a file for row {row} of {name!r}, there is none at '{printable(path)}' ({error.strerror})"
            ) from None
        file[row], offset[row] = numbers.setdefault(path, len(numbers)), 0
    return RangeStorage(list(numbers) or [""], file, offset, length, absent)
