# SPDX-License-Identifier: Apache-2.0
"""Storages over manifests, for readers of containers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError
from ..contract.lowering import Lowering
from ..contract.step import Value
from ..contract.storage import Bools, ByteRange, RecordForm, RecordLocation, Storage
from ..contract.text import brief, printable
from ..contract.types import DType
from ..native import _native
from ..remote.block_cache import RemoteObject, identity_of
from ..remote.store import RemoteStore
from ._fetching import AsyncStorage
from ._manifest_file import OpenManifest, is_manifest, open_manifest, root_of
from ._storages import NativeStorage


class ManifestStorage(NativeStorage):
    """Component of all samples of a manifest, in files.

    Args:
        manifest: the manifest.
        columns: numbers of the components, of which the first one in the shard is taken.
        form: form in which the records are stored.
    """

    def __init__(self, manifest: OpenManifest, columns: Sequence[int], form: RecordForm) -> None:
        self._manifest = manifest
        self._own = _native.ManifestTable(manifest.native, list(columns), int(form))
        self.table: _native.Records = self._own
        self._parts: tuple[ManifestStorage, ...] = (self,)
        self._joins: list[tuple[tuple[ManifestStorage, ...], ManifestStorage]] = []

    def locate(self, record: int) -> RecordLocation:
        for part in self._parts:
            if record < len(part._own):
                return located(part._manifest, part._own, record)
            record -= len(part._own)
        raise IndexError(record)

    def absent(self) -> Bools | None:
        return None  # a mask of all samples would be gigabytes; a row without the component has no bytes

    def joined(self, others: Sequence[ManifestStorage]) -> ManifestStorage:
        # Columns that share a storage share the joined one, so that a record is read once for all of them.
        parts = tuple(p for one in (self, *others) for p in one._parts)
        for known, storage in self._joins:
            if known == parts:
                return storage
        storage = ManifestStorage.__new__(ManifestStorage)
        storage._manifest, storage._own, storage._parts, storage._joins = self._manifest, self._own, parts, []
        storage.table = _native.JoinedRecords([p._own for p in parts])
        self._joins.append((parts, storage))
        return storage

    def close(self) -> None:
        for part in self._parts:
            part._manifest.native.close()


class ManifestObjects(AsyncStorage):
    """Component of all samples of a manifest, in objects of a store.

    Args:
        store: the client.
        manifest: the manifest.
        columns: numbers of the components, of which the first one in the shard is taken.
        form: form in which the records are stored.
    """

    def __init__(self, store: RemoteStore, manifest: OpenManifest, columns: Sequence[int], form: RecordForm) -> None:
        super().__init__(store, (), (), (), (), form=form)
        self._objects, self._manifest = store, manifest
        self._own = _native.ManifestTable(manifest.native, list(columns), int(form))

    def __len__(self) -> int:
        return len(self._own)

    def locate(self, record: int) -> RecordLocation:
        return located(self._manifest, self._own, record)

    def absent(self) -> Bools | None:
        return None

    def _make_kept(self) -> _native.KeptBlocks | None:
        return self._objects.kept_shards(self._own)

    def _count(self, c: Lowering, kept: _native.KeptBlocks, reader: int, size: int) -> Value | None:
        # The length of a record is in the manifest's file, which a row reads.
        return c.native("kept_bytes", [], [(DType.INT64, (), "")], attrs=(kept, reader))[0] if size == 1 else None

    def _blocks_of(self, records: npt.NDArray[np.int64]) -> dict[tuple[RemoteObject, int], None]:
        found: dict[tuple[RemoteObject, int], None] = {}
        block_bytes = self._objects.block_bytes
        for record in records.tolist():
            try:
                shard, offset, length, form = self._own.find(record)
                if form != RecordForm.ABSENT and length:
                    one = self._object(shard)
                    last = (min(offset + length, one.size) - 1) // block_bytes
                    found |= dict.fromkeys((one, block) for block in range(offset // block_bytes, last + 1))
            except OSError:  # the row meets the failure again and reports it
                continue
        return found

    def _object(self, shard: int) -> RemoteObject:
        """Return the object of a shard.

        Raises:
            OSError: the manifest's file cannot be read.
        """
        native = self._manifest.native
        name, tag = native.text(shard)
        path, size, etag = os.fsdecode(name), native.shard(shard)[2], tag.decode() or None
        return RemoteObject(path, size, etag, identity_of(path, size, etag))

    def joined(self, others: Sequence[AsyncStorage]) -> AsyncStorage:
        raise ArgumentError(
            "expected one manifest of objects, got several parts: `stoker index --manifest` joins manifests"
        )

    def _find(self, record: int) -> RecordLocation:
        return find_record(self._manifest, self._own, record)

    def _fetch(self, records: Sequence[int], ranges: Sequence[ByteRange]) -> Sequence[Future[bytes] | bytes]:
        shards = self._manifest.native.shards_of(np.asarray(records, np.uint64))
        wanted = [(self._object(int(s)), r.offset, r.length) for s, r in zip(shards, ranges, strict=True)]
        return self._objects.fetch_objects(wanted)

    def close(self) -> None:
        super().close()
        self._manifest.native.close()


def find_record(manifest: OpenManifest, table: _native.ManifestTable, record: int) -> RecordLocation:
    """Return the location of a record.

    Raises:
        OSError: the manifest's files cannot be read, or are damaged.
    """
    shard, offset, length, form = table.find(record)
    if form == RecordForm.ABSENT:
        return RecordLocation()
    name = os.fsdecode(manifest.native.text(shard)[0])
    return RecordLocation(name if manifest.is_remote else root_of(manifest.path) + name, offset, length)


def located(manifest: OpenManifest, table: _native.ManifestTable, record: int) -> RecordLocation:
    """Return the location of a record for messages; the manifest if its files cannot be read."""
    try:
        return find_record(manifest, table, record)
    except OSError:
        return RecordLocation(manifest.path)


def manifest_of(name: str, paths: Sequence[str], kind: str) -> OpenManifest | None:
    """Return the manifest that a reader's paths name; None if they name files.

    Args:
        name: name of the argument.
        paths: the paths.
        kind: format of the reader's files.

    Raises:
        ArgumentError: there are several manifests, or the manifest is damaged, or its shards are of another format.
        OSError: the manifest cannot be read.
    """
    if not any(map(is_manifest, paths)):
        return None
    if len(paths) > 1:
        raise ArgumentError(
            f"expected one manifest as `{name}`, or files, got {len(paths)} paths: `stoker index --manifest` joins "
            "manifests"
        )
    opened = open_manifest(paths[0])
    if opened.kind != kind:
        raise ArgumentError(f"expected a manifest of {kind} files, got one of {opened.kind}: '{printable(paths[0])}'")
    if not len(opened.native):
        raise ArgumentError(f"expected samples in the manifest '{printable(paths[0])}', got none")
    return opened


def storages_of(manifest: OpenManifest, columns: Sequence[Sequence[int]], form: RecordForm) -> list[Storage]:
    """Return a storage for each list of alternative components."""
    if not manifest.is_remote:
        return [ManifestStorage(manifest, numbers, form) for numbers in columns]
    store = RemoteStore(())
    return [ManifestObjects(store, manifest, numbers, form) for numbers in columns]


def refuse_index(name: str, value: Any) -> None:
    """Raise ArgumentError for index files together with a manifest."""
    if value is not None and value not in ("", [], ()):
        raise ArgumentError(
            f"expected no `{name}` with a manifest, which has the ranges of all records, got {brief(value)}"
        )
