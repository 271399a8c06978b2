# SPDX-License-Identifier: Apache-2.0
"""``readers.mds``: columns of data sets in the form of MosaicML Streaming."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.argument import arg
from ..contract.columns import Column, DataSet
from ..contract.errors import ArgumentError, DataError
from ..contract.lowering import Lowering
from ..contract.step import ALIASES, Value
from ..contract.storage import Bools, RecordForm, Storage
from ..contract.text import brief, printable
from ..contract.types import DType
from ..remote.addresses import is_remote, join
from ..remote.copies import local_copy
from ..remote.store import RemoteStore, open_store
from ._containers import digest_of, storage_of
from ._file_state import state_of
from ._index_files import ContainerIndex
from ._manifest import manifest_of, storages_of
from ._named_columns import NamedColumnsReader, chosen_columns, require_columns

_BYTES = ("bytes", "str", "jpeg", "jpegarray", "png", "pil", "json", "pkl")
_NUMBERS = {
    "int": DType.INT64, "uint8": DType.UINT8, "uint16": DType.UINT16, "uint32": DType.UINT32, "uint64": DType.UINT64,
    "int8": DType.INT8, "int16": DType.INT16, "int32": DType.INT32, "int64": DType.INT64,
    "float16": DType.FLOAT16, "float32": DType.FLOAT, "float64": DType.FLOAT64,
}  # fmt: skip


@dataclass(frozen=True)
class ShardLayout:
    """Columns of all shards: their names, encodings and sizes in bytes (-1: the record says)."""

    names: tuple[str, ...]
    encodings: tuple[str, ...]
    sizes: tuple[int, ...]


class MDSReader(NamedColumnsReader, name="readers.mds"):
    """Read columns of a data set in the form of MosaicML Streaming (MDS). Outputs: a dict with a node per column.

    Numbers (``int``, ``float32``, ...) are arrays ``(1,)`` of their type. All other columns are uint8 ``(N,)``, as
    stored: a JPEG file for ``jpeg``, UTF-8 for ``str``. An ``ndarray`` of declared type and shape has these.
    Shards must not be compressed, because parts of compressed ones cannot be read.
    """

    positional = ("path", "columns")
    result_neutral = (*NamedColumnsReader.result_neutral, "path")
    path = arg(
        "str", doc="Folder with the data set's index.json, or its address; or a manifest (.manifest), which `stoker "
        "index --manifest` writes.",
    )  # fmt: skip

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Read the index of the data set and the offsets of its shards.

        Raises:
            ArgumentError: the folder has no such data set, or it lacks a column.
            OSError: the operating system fails.
        """
        folder = args["path"]
        manifest = manifest_of("path", [folder], "mds")
        if manifest is not None:
            layout = ShardLayout(*map(tuple, manifest.extra))
            storage = storages_of(manifest, [(0,)], RecordForm.STORED)[0]
            columns = tuple(_FieldColumn(layout, name, storage) for name in chosen_columns(args["columns"]))
            return DataSet(columns, manifest.digest)
        layout, shards = _read_index(folder)
        paths = [join(folder, name) for name, _ in shards]
        store = open_store(paths)
        indexes = [read_offsets(path, count, store) for path, (_, count) in zip(paths, shards, strict=True)]
        storage = storage_of(paths, indexes, RecordForm.STORED, store)
        if not len(storage):
            raise ArgumentError(f"expected samples in '{printable(folder)}', got none")
        columns = tuple(_FieldColumn(layout, name, storage) for name in chosen_columns(args["columns"]))
        return DataSet(columns, digest_of(paths, indexes, repr(layout)))


def find_shards(folders: Sequence[str]) -> tuple[dict[str, int], list[Any]]:
    """Return path and number of samples of each shard of data sets, and their columns for a manifest.

    Raises:
        ArgumentError: a folder has no such data set, or they have different columns.
    """
    found: dict[str, int] = {}
    layouts = set()
    for folder in folders:
        layout, shards = _read_index(folder)
        layouts.add(layout)
        found |= {join(folder, name): count for name, count in shards}
    if len(layouts) != 1:
        raise ArgumentError(f"expected data sets with the same columns, got {len(layouts)} kinds of them")
    one = layouts.pop()
    return found, [list(one.names), list(one.encodings), list(one.sizes)]


def _read_index(folder: str) -> tuple[ShardLayout, list[tuple[str, int]]]:
    """Return the columns of a data set, and name and number of samples of every shard."""
    path = join(folder, "index.json")
    shards = [_shard(one, path) for one in _read_shards(path)]
    layouts = {layout for layout, *_ in shards}
    if len(layouts) > 1:
        raise ArgumentError(f"expected shards with the same columns in '{printable(path)}', got different ones")
    return (layouts.pop() if layouts else ShardLayout((), (), ())), [(name, count) for _, name, count in shards]


def _read_shards(path: str) -> list[Any]:
    """Return the entries of the shards in an index.json. All have the form that `_shard` needs."""
    try:
        with open(local_copy("path", path), "rb") as file:
            content = json.load(file)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise ArgumentError(f"expected a data set with an index.json, there is none at '{printable(path)}'") from None
    except ValueError as error:
        raise ArgumentError(f"expected JSON in '{printable(path)}', got other text: {error}") from None
    try:
        shards = list(content["shards"])
        for one in shards:
            _shard(one, path)
    except (KeyError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"expected a list of shards with names, columns and sizes in '{printable(path)}', got another form "
            f"({type(error).__name__}: {error})"
        ) from None
    return shards


def _shard(one: Mapping[str, Any], path: str) -> tuple[ShardLayout, str, int]:
    if one["format"] != "mds" or one["version"] != 2:
        raise ArgumentError(
            f"expected shards of the format mds, version 2, in '{printable(path)}', got {brief(one['format'])}, "
            f"version {brief(one['version'])}"
        )
    name = str(one["raw_data"]["basename"])
    has_plain = not is_remote(path) and os.path.exists(os.path.join(os.path.dirname(path), name))
    if one.get("compression") and not has_plain:
        raise ArgumentError(
            f"expected shards that are not compressed in '{printable(path)}', got {brief(one['compression'])}: write "
            "them without `compression`, or decompress them"
        )
    if os.path.basename(name) != name:
        raise ArgumentError(f"expected names of files in '{printable(path)}', got {brief(name)}")
    sizes = tuple(-1 if n is None else int(n) for n in one["column_sizes"])
    names, encodings = tuple(map(str, one["column_names"])), tuple(map(str, one["column_encodings"]))
    if not len(names) == len(encodings) == len(sizes) or any(not -1 <= n < 1 << 40 for n in sizes):
        raise ValueError("columns with a name, an encoding and a size each")
    return ShardLayout(names, encodings, sizes), name, int(one["samples"])


def read_offsets(path: str, count: int, store: RemoteStore | None = None) -> ContainerIndex:
    """Return the samples of a shard: their number and their offsets, 4 bytes each, are at its begin.

    Raises:
        ArgumentError: there is no such shard, or it has other samples than its index says.
    """
    needed, state = 4 * (count + 2), None
    try:
        if store is not None:
            size = store.objects[path].size
            content = store.read(path, 0, min(needed, size))
        else:
            with open(path, "rb") as file:
                content, state = file.read(needed), state_of(file.fileno())
                size = state[0]
    except FileNotFoundError:
        raise ArgumentError(f"expected a shard, there is none at '{printable(path)}'") from None
    except DataError as error:
        raise ArgumentError(str(error)) from None
    head = np.frombuffer(content[: len(content) // 4 * 4], "<u4")
    ends = head[1:].astype(np.uint64)
    if len(head) != count + 2 or int(head[0]) != count or (np.diff(ends.astype(np.int64)) < 0).any() or ends[-1] > size:
        raise ArgumentError(
            f"expected a shard of {count} samples, as index.json says, got other offsets in '{printable(path)}'"
        )
    return ContainerIndex(ends[:-1], ends[1:] - ends[:-1], state=state)


def split_fields(record: bytes, declared: Sequence[int]) -> list[bytes]:
    """Return the fields of a record.

    Args:
        record: the record: a size of 4 bytes for each field that varies in size, then the fields.
        declared: bytes of each field; -1 for those that vary.

    Raises:
        DataError: the record has other bytes.
    """
    sizes = list(declared)
    varying = [i for i, n in enumerate(sizes) if n < 0]
    head = record[: 4 * len(varying)]
    if len(head) == 4 * len(varying):
        for i, n in zip(varying, np.frombuffer(head, "<u4"), strict=True):
            sizes[i] = int(n)
        if len(head) + sum(sizes) == len(record):
            ends = list(itertools.accumulate(sizes, initial=len(head)))
            return [record[begin:end] for begin, end in itertools.pairwise(ends)]
    raise DataError(f"expected a record of {len(sizes)} fields, got {len(record)} bytes")


def read_shard_layout(path: str) -> tuple[ShardLayout, ContainerIndex, Mapping[str, Any]]:
    """Return the columns of a shard, its samples, and the facts about its file in index.json: bytes and hashes.

    Raises:
        ArgumentError: there is no index.json in its folder, this has no such shard, or the shard has other samples.
        OSError: a file cannot be read.
    """
    folder, name = os.path.split(path)
    listed = join(folder or ".", "index.json")
    for one in _read_shards(listed):
        if one["raw_data"]["basename"] == name:
            layout, _, count = _shard(one, listed)
            return layout, read_offsets(path, count), one["raw_data"]
    raise ArgumentError(f"expected {printable(name)!r} among the shards in '{printable(listed)}', got others")


class _FieldColumn(Column):
    """Column of the samples in a storage. Columns over one storage read a sample once."""

    layout = ""
    optional = False

    def __init__(self, layout: ShardLayout, name: str, storage: Storage) -> None:
        require_columns([name], layout.names)
        self.name, self._layout, self._storage = name, layout, storage
        self._field = layout.names.index(name)
        self._shape: tuple[int, ...] | None = None  # of numbers
        encoding = layout.encodings[self._field]
        kind, *more = encoding.split(":")
        if kind == "ndarray" and len(more) == 2:
            self.dtype = _NUMBERS.get(more[0], DType.UINT8)
            self._shape = tuple(int(n) for n in more[1].split(",")) if more[0] in _NUMBERS else None
        elif kind in _NUMBERS:
            self.dtype, self._shape = _NUMBERS[kind], (1,)
        elif kind in _BYTES:
            self.dtype = DType.UINT8
        else:
            raise ArgumentError(
                f"expected a column of bytes, text, images or numbers, or an ndarray with type and shape, got {name!r} "
                f"with the encoding {encoding!r}"
            )
        if self._shape is not None:
            size = self.dtype.size * int(np.prod(self._shape, dtype=np.int64))
            if size != layout.sizes[self._field]:
                raise ArgumentError(
                    f"expected {size} bytes in the column {name!r} of the encoding {encoding!r}, got "
                    f"{layout.sizes[self._field]}"
                )
        self.rank = 1 if self._shape is None else len(self._shape)

    def __len__(self) -> int:
        return len(self._storage)

    @property
    def storage(self) -> Storage:
        return self._storage

    def absent(self) -> Bools | None:
        return None

    def lower(self, c: Lowering, reader: int) -> Value:
        record = self._storage.lower(c, reader, DType.UINT8, (), "")
        attrs = (self._layout.sizes, self._field)
        if self._shape is not None:
            return c.native("field_numbers", [record], [(self.dtype, self._shape, "")], attrs=attrs)[0]
        value = c.opaque(DType.UINT8, 1)
        c.emit("field_bytes", [record, record], [value], attrs=attrs, memory=ALIASES)
        return value

    def row(self, index: int) -> npt.NDArray[Any]:
        try:
            content = split_fields(self._storage.content(index), self._layout.sizes)[self._field]
        except DataError as error:
            raise DataError(str(error), sample=index) from None
        values = np.frombuffer(content, self.dtype.numpy) if content else np.empty(0, self.dtype.numpy)
        return values if self._shape is None else values.reshape(self._shape)

    def joined(self, others: Sequence[Column]) -> _FieldColumn:
        same = [o for o in others if isinstance(o, _FieldColumn) and (o.name, o._layout) == (self.name, self._layout)]
        if len(same) < len(others):
            raise ArgumentError(f"expected parts with the same columns, got another declaration of {brief(self.name)}")
        return _FieldColumn(self._layout, self.name, self._storage.joined([o.storage for o in same]))
