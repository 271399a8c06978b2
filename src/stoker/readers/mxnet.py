# SPDX-License-Identifier: Apache-2.0
"""``readers.mxnet``: images and labels in RecordIO files, as MXNet's ``im2rec`` writes them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.argument import arg
from ..contract.columns import Column, DataSet
from ..contract.errors import ArgumentError, DataError
from ..contract.lowering import Lowering
from ..contract.step import ALIASES, ALLOCATES, Value
from ..contract.storage import Bools, RecordForm, Storage
from ..contract.text import printable
from ..contract.types import DType
from ..remote.copies import local_copy
from ..remote.store import RemoteStore, open_store
from ._containers import (
    ContainerReader,
    check_begin,
    damage_notes,
    digest_of,
    is_missing,
    paths_of,
    read_numbers,
    storage_of,
)
from ._index_files import ContainerIndex, index_files
from ._manifest import manifest_of, refuse_index, storages_of


class MXNetReader(ContainerReader, name="readers.mxnet"):
    """Read images and labels in RecordIO files. Outputs: the bytes, uint8 ``(N,)``, and the labels, float32 ``(L,)``.

    A record has one label, or a list of labels; they may differ in length.

    No index file is needed: the first pipeline over a file finds its records, in one pass over their headers, and keeps
    the result in Stoker's cache folder. Records come in the order of the files. Records that MXNet has stored in
    several parts, because they contain its magic number, are joined.
    """

    positional = ("path", "index_path")
    outputs = 2
    result_neutral = (*ContainerReader.result_neutral, "path", "index_path")
    path = arg(
        "object", doc="RecordIO file (.rec), or a list of files; or a manifest (.manifest), which "
        "`stoker index --manifest` writes.",
    )  # fmt: skip
    index_path = arg(
        "object", None, doc='Index file (.idx) with "key offset" per line: one for all files, with offsets that '
        "continue from file to file. By default the records are found without one.",
    )  # fmt: skip

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        paths_of("path", args["path"], may_be_remote=True)
        _index_path(args["index_path"])

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Find the records.

        Raises:
            ArgumentError: there are no records, or the index file is wrong.
            OSError: the operating system fails.
        """
        paths, given = paths_of("path", args["path"], may_be_remote=True), _index_path(args["index_path"])
        manifest = manifest_of("path", paths, "recordio")
        notes: tuple[str, ...] = ()
        if manifest is not None:
            refuse_index("index_path", given)
            storage, digest = storages_of(manifest, [(0,)], RecordForm.RECORDIO)[0], manifest.digest
        else:
            indexes, store = _indexes(paths, given)
            storage, digest = storage_of(paths, indexes, RecordForm.RECORDIO, store), digest_of(paths, indexes)
            notes = damage_notes(paths, indexes, "Its last sample, which represents the rest of the file, is bad")
        if not len(storage):
            raise ArgumentError(f"expected records in {len(paths)} files such as '{printable(paths[0])}', got none")
        return DataSet((ImageOfRecord(storage), LabelsOfRecord(storage)), digest, notes=notes)


def _indexes(paths: list[str], given: str | None) -> tuple[list[ContainerIndex], RemoteStore | None]:
    """Return the indexes of the files, and the store if they are objects."""
    store = open_store(paths)
    if given is not None:
        return _read_index(given, paths, store), store
    indexes = index_files("recordio", paths, store)
    for path, index in zip(paths, indexes, strict=True):
        check_begin(path, index, "RecordIO")
    return indexes, store


class _OfRecord(Column):
    """Part of the image records in a storage. Columns over one storage read a record once."""

    rank = 1
    layout = ""
    optional = False

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def __len__(self) -> int:
        return len(self._storage)

    @property
    def storage(self) -> Storage:
        return self._storage

    def absent(self) -> Bools | None:
        return None

    def joined(self, others: Sequence[Column]) -> _OfRecord:
        if any(type(o) is not type(self) or type(o.storage) is not type(self._storage) for o in others):
            raise ArgumentError("expected parts with the same columns, got readers of different kinds")
        return type(self)(self._storage.joined([o.storage for o in others]))

    def _split(self, index: int) -> tuple[npt.NDArray[np.float32], bytes]:
        """Return the labels and the image of a sample."""
        try:
            return split_record(self._storage.content(index))
        except DataError as error:
            raise DataError(str(error), sample=index) from None


_HEADER = 24  # bytes: number of labels, the single label, two numbers of the record


def split_record(record: bytes) -> tuple[npt.NDArray[np.float32], bytes]:
    """Return the labels and the encoded image of an image record.

    Raises:
        DataError: the record is too short for its labels.
    """
    head = np.frombuffer(record[:8], np.uint32)
    count = int(head[0]) if len(record) >= _HEADER else 0
    if len(record) < _HEADER + 4 * count:
        raise DataError(f"expected labels and an image in a record, got {len(record)} bytes")
    end = _HEADER + 4 * count
    labels = record[_HEADER:end] if count else record[4:8]
    return np.frombuffer(labels, np.float32), record[end:]


class ImageOfRecord(_OfRecord):
    """Bytes of the images."""

    name = "data"
    dtype = DType.UINT8

    def lower(self, c: Lowering, reader: int) -> Value:
        record = self._storage.lower(c, reader, DType.UINT8, (), "")
        image = c.opaque(DType.UINT8, 1)
        c.emit("image_of_record", [record, record], [image], memory=ALIASES)
        return image

    def row(self, index: int) -> npt.NDArray[Any]:
        image = self._split(index)[1]
        return np.frombuffer(image, np.uint8) if image else np.empty(0, np.uint8)


class LabelsOfRecord(_OfRecord):
    """Labels of the images."""

    name = "label"
    dtype = DType.FLOAT

    def lower(self, c: Lowering, reader: int) -> Value:
        record = self._storage.lower(c, reader, DType.UINT8, (), "")
        labels = c.opaque(DType.FLOAT, 1)
        c.emit("labels_of_record", [record], [labels], memory=ALLOCATES)
        return labels

    def row(self, index: int) -> npt.NDArray[Any]:
        return self._split(index)[0]


def _index_path(value: Any) -> str | None:
    if is_missing(value):
        return None
    found = paths_of("index_path", value, may_be_remote=True)
    if len(found) != 1:
        raise ArgumentError(f"expected one index file for all files as `index_path`, got {len(found)}")
    return found[0]


def _read_index(path: str, files: Sequence[str], store: RemoteStore | None) -> list[ContainerIndex]:
    """Return the indexes of the files. As in DALI, the order of the lines does not matter, and neither do the keys."""
    offsets = np.unique(read_numbers(local_copy("index_path", path), '"key offset"')[:, 1])
    sizes = []
    for file in files:
        if store is not None:
            sizes.append(store.objects[file].size)
            continue
        if not os.path.isfile(file):
            raise ArgumentError(f"expected a file, there is none at '{printable(file)}'")
        sizes.append(os.path.getsize(file))
    ends = np.cumsum(sizes, dtype=np.int64)
    if len(offsets) and offsets[-1] >= ends[-1]:
        raise ArgumentError(
            f"expected offsets below {ends[-1]}, the size of all files, in '{printable(path)}', got {offsets[-1]}"
        )
    lengths = np.diff(np.append(offsets, ends[-1]))
    found = []
    for size, end in zip(sizes, ends, strict=True):
        mine = (offsets >= end - size) & (offsets < end)
        # Files end with records: what follows the last record of a file in the index belongs to the next file.
        inside = np.minimum(lengths[mine], end - offsets[mine])
        found.append(ContainerIndex((offsets[mine] - (end - size)).astype(np.uint64), inside.astype(np.uint64)))
    return found
