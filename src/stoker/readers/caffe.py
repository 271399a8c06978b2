# SPDX-License-Identifier: Apache-2.0
"""``readers.caffe``: images and labels in LMDB environments of Caffe."""

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
from ..remote.addresses import is_remote, join
from ..remote.store import open_store
from ._containers import ContainerReader, digest_of, paths_of, storage_of
from ._example import wire_fields
from ._index_files import index_files


class CaffeReader(ContainerReader, name="readers.caffe"):
    """Read images and labels of LMDB environments that Caffe's tools have written. Outputs: the image, the label.

    An encoded image is uint8 ``(N,)``; pixels are uint8 ``(H, W, C)`` in the order in which they are stored, which is
    channel by channel. The first record decides which of the two all are. The label is int32 ``(1,)``, or has no
    elements if the record lacks it. Records come in the order of their keys as bytes, one environment after the other.

    The values of an environment are found in one pass over its tree, and the result is kept in Stoker's cache folder.
    No other program may write to the environment while it is read.
    """

    positional = ("path",)
    outputs = 2
    result_neutral = (*ContainerReader.result_neutral, "path")
    path = arg("object", doc="Folder of an LMDB environment, or its data file (.mdb), or a list of them; or addresses.")
    image_available = arg("bool", True, doc="Whether there is an output for images.")
    label_available = arg("bool", True, doc="Whether there is an output for labels.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        paths_of("path", args["path"], may_be_remote=True)
        if not args["image_available"] and not args["label_available"]:
            raise ArgumentError("expected `image_available` or `label_available`, got neither")

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return int(args["image_available"]) + int(args["label_available"])

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Find the records.

        Raises:
            ArgumentError: there are no records, or an environment is damaged.
            OSError: the operating system fails.
        """
        storage, digest = open_environments(paths_of("path", args["path"], may_be_remote=True))
        columns: list[Column] = []
        if args["image_available"]:
            columns.append(_ImageOfDatum(storage, 1 if Datum(storage.content(0)).is_encoded else 3))
        if args["label_available"]:
            columns.append(_LabelOfDatum(storage))
        return DataSet(tuple(columns), digest)


def open_environments(paths: Sequence[str]) -> tuple[Storage, str]:
    """Return a storage with the values of LMDB environments, and their digest.

    Raises:
        ArgumentError: an environment is damaged or empty.
        OSError: the operating system fails.
    """
    files = [_data_file(path) for path in paths]
    store = open_store(files)
    indexes = index_files("lmdb", files, store)
    for file, index in zip(files, indexes, strict=True):
        if index.damage:
            raise ArgumentError(
                f"expected an LMDB environment, got '{printable(file)}', which is damaged at byte "
                f"{index.damage_offset}: {index.damage}"
            )
        if not len(index):
            raise ArgumentError(f"expected records in '{printable(file)}', got an empty environment")
    return storage_of(files, indexes, RecordForm.STORED, store), digest_of(paths, indexes)


def _data_file(path: str) -> str:
    """Return the data file of an environment: in its folder, or the path itself. Objects of data files have ".mdb"."""
    is_folder = not path.endswith(".mdb") if is_remote(path) else os.path.isdir(path)
    return join(path, "data.mdb") if is_folder else path


class Datum:
    """Record of Caffe, read in plain Python.

    Raises:
        DataError: the record is damaged.
    """

    def __init__(self, record: bytes) -> None:
        numbers: dict[int, int] = {}
        self.data = b""
        for field, wire, content in wire_fields(record, "a record of Caffe"):
            if field == 4 and wire == 2:
                self.data = content
            elif wire == 0:
                numbers[field] = content
        self.shape = tuple(numbers.get(field, 0) for field in (2, 3, 1))  # height, width, channels
        self.is_encoded = bool(numbers.get(7, 1))
        self.label = np.array([numbers[5] & 0xFFFFFFFF] if 5 in numbers else [], np.uint32).view(np.int32)


class _OfDatum(Column):
    """Part of the records in a storage. Columns over one storage read a record once."""

    layout = ""
    optional = False

    def __init__(self, storage: Storage, rank: int = 1) -> None:
        self._storage, self.rank = storage, rank

    def __len__(self) -> int:
        return len(self._storage)

    @property
    def storage(self) -> Storage:
        return self._storage

    def absent(self) -> Bools | None:
        return None

    def joined(self, others: Sequence[Column]) -> _OfDatum:
        if any(type(o) is not type(self) or o.rank != self.rank for o in others):
            raise ArgumentError("expected parts with the same columns, got readers of different kinds")
        return type(self)(self._storage.joined([o.storage for o in others]), self.rank)


class _ImageOfDatum(_OfDatum):
    """Images: encoded ones, or pixels."""

    name = "data"
    dtype = DType.UINT8

    def lower(self, c: Lowering, reader: int) -> Value:
        record = self._storage.lower(c, reader, DType.UINT8, (), "")
        image = c.opaque(DType.UINT8, self.rank)
        c.emit("image_of_datum", [record, record], [image], memory=ALIASES)
        return image

    def row(self, index: int) -> npt.NDArray[Any]:
        datum = Datum(self._storage.content(index))
        values = np.frombuffer(datum.data, np.uint8) if datum.data else np.empty(0, np.uint8)
        if datum.is_encoded != (self.rank == 1) or (self.rank == 3 and np.prod(datum.shape) != len(values)):
            raise DataError("expected an image of the first record's kind, got another one", sample=index)
        return values if self.rank == 1 else values.reshape(datum.shape)


class _LabelOfDatum(_OfDatum):
    """Labels."""

    name = "label"
    dtype = DType.INT32

    def lower(self, c: Lowering, reader: int) -> Value:
        record = self._storage.lower(c, reader, DType.UINT8, (), "")
        label = c.opaque(DType.INT32, 1)
        c.emit("label_of_datum", [record], [label], memory=ALLOCATES)
        return label

    def row(self, index: int) -> npt.NDArray[Any]:
        return Datum(self._storage.content(index)).label
