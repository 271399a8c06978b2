# SPDX-License-Identifier: Apache-2.0
"""Two custom readers that use only public names: one of tar files, one of length-prefixed records."""

from __future__ import annotations

import struct
import tarfile
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from stoker import ArgumentError, arg
from stoker.readers import (
    AsyncStorage,
    ByteRange,
    Bytes,
    Column,
    DataSet,
    MemoryStorage,
    RangeStorage,
    SampledReader,
    Storage,
    Values,
    fingerprint,
    presence,
    ragged,
    strings,
)

# ---- tar files: components of a sample are adjacent and share their key ----


class TarReader(SampledReader, name="own.tar"):
    """Read components of the samples in tar files.

    Outputs: the bytes of every component, then for every optional component whether the sample has it.
    """

    paths = arg("object", doc="The tar files.")
    ext = arg("object", doc="Extensions of the components.")
    dtypes = arg("object", None, doc="Element types by extension; bytes by default.")
    optional = arg("object", (), doc="Extensions that samples may lack.")
    result_neutral = (*SampledReader.result_neutral, "paths")

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return len(args["ext"]) + len(args["optional"])

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        samples: list[dict[str, tuple[int, int, int]]] = []
        decides = []
        for number, path in enumerate(args["paths"]):
            last = None
            for key, ext, offset, size in _members(path):
                if key != last:
                    samples.append({})
                    last = key
                samples[-1].setdefault(ext, (number, offset, size))
                decides.append(f"{key} {ext} {offset} {size}")
        if not samples:
            raise ArgumentError(f"expected members in {args['paths']}, got none")
        columns: list[Column] = []
        for ext in args["ext"]:
            file, offset, length = np.asarray([s.get(ext, (0, 0, 0)) for s in samples]).T
            storage = RangeStorage(args["paths"], file, offset, length, [ext not in s for s in samples])
            dtype = (args["dtypes"] or {}).get(ext, "uint8")
            columns.append(Bytes(ext, storage, dtype, optional=ext in args["optional"]))
        columns += [presence(c) for c in columns if c.optional]
        return DataSet(tuple(columns), fingerprint("\n".join(decides)))


def _members(path: str) -> list[tuple[str, str, int, int]]:
    """Return key, extension, offset and size of the regular files in a tar file."""
    found = []
    with tarfile.open(path, "r:") as tar:
        for member in tar:
            if member.isreg():
                folder, _, name = member.name.rpartition("/")
                key, _, ext = name.partition(".")
                found.append((f"{folder}/{key}", ext, member.offset_data, member.size))
    return found


# ---- length-prefixed records ----

HEADER = struct.Struct("<IiI")  # bytes of the payload, label, number of points


def write_records(path: Any, records: Sequence[tuple[bytes, int, Any]]) -> None:
    """Write (payload, label, points as float32 ``(n, 2)``) one after the other."""
    with open(path, "wb") as file:
        for payload, label, points in records:
            points = np.asarray(points, np.float32).reshape(-1, 2)
            file.write(HEADER.pack(len(payload), label, len(points)) + points.tobytes() + payload)


class RecordReader(SampledReader, name="own.records"):
    """Read length-prefixed records. Outputs: payload, label, points, and the name of the record."""

    outputs = 4
    paths = arg("object", doc="The files.")
    where = arg("str", "file", choices=("file", "memory", "store"), doc="Where the payloads are read from.")
    store = arg("object", None, doc="The store, if they are read from one.")
    result_neutral = (*SampledReader.result_neutral, "paths", "where", "store")

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        rows: list[tuple[int, int, int]] = []
        labels: list[int] = []
        points: list[Any] = []
        contents = []
        for number, path in enumerate(args["paths"]):
            with open(path, "rb") as file:
                content = file.read()
            contents.append(content)
            at = 0
            while at + HEADER.size <= len(content):
                size, label, count = HEADER.unpack_from(content, at)
                at += HEADER.size
                points.append(np.frombuffer(content[at : at + 8 * count], np.float32).reshape(-1, 2))
                at += 8 * count
                rows.append((number, at, size))
                labels.append(label)
                at += size
        file_, offset, length = np.asarray(rows).T
        storage: Storage
        if args["where"] == "memory":
            storage = MemoryStorage(contents, file_, offset, length, name="memory of records")
        elif args["where"] == "store":
            storage = AsyncStorage(args["store"], args["paths"], file_, offset, length)
        else:
            storage = RangeStorage(args["paths"], file_, offset, length)
        columns = (
            Bytes("payload", storage),
            Values("label", np.asarray(labels, np.int32)[:, None]),
            ragged("points", np.concatenate(points), np.cumsum([len(p) for p in points])),
            strings("name", [f"record {i} of {n}" for i, (n, _, _) in enumerate(rows)]),
        )
        return DataSet(columns, fingerprint(*contents), "label")


class FolderStore:
    """Asynchronous store over local files, with its own threads. It counts requests and fails on demand."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(4, thread_name_prefix="store")
        self.requested: list[ByteRange] = []
        self.failing: dict[tuple[str, int], BaseException] = {}
        self.cut: set[tuple[str, int]] = set()
        self.closed = 0

    def fetch(self, ranges: Sequence[ByteRange]) -> list[Future[bytes]]:
        self.requested += ranges
        return [self.pool.submit(self._read, r) for r in ranges]

    def _read(self, r: ByteRange) -> bytes:
        failure = self.failing.get((r.path, r.offset))
        if failure is not None:
            raise failure
        with open(r.path, "rb") as file:
            file.seek(r.offset)
            return file.read(r.length - ((r.path, r.offset) in self.cut))

    def close(self) -> None:
        self.closed += 1
        self.pool.shutdown(cancel_futures=True)
