# SPDX-License-Identifier: Apache-2.0
"""``stoker index --manifest``: finds the records of all shards of a data set and writes them into a manifest."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError
from ..contract.text import brief, printable
from ..native import _native
from ..readers._containers import check_begin
from ..readers._index_files import ContainerIndex, index_files
from ..readers._manifest_file import (
    ManifestWriter,
    ShardRecords,
    file_version,
    is_manifest,
    merge_manifests,
    open_manifest,
)
from ..readers.bagz import read_ends, read_ends_of_object
from ..readers.mds import find_shards, read_offsets
from ..remote.addresses import is_remote
from ..remote.store import RemoteStore, open_store
from .container_format import FORMAT_NAMES, find_kind

_AT_ONCE = 64  # shards whose indexes are in memory together
_KINDS = {".tfrecord": "tfrecord", ".rec": "recordio", ".tar": "tar", ".bag": "bagz"}
_ABSENT = np.uint64(0xFFFFFFFFFFFFFFFF)


def write_manifest(out: str, paths: Sequence[str], progress: Callable[[int, int], None] | None = None) -> int:
    """Write a manifest of container files, and return the number of its samples.

    Args:
        out: path of the manifest.
        paths: files of one format, in the order of the data set: TFRecord, RecordIO, tar, Bagz; or addresses of such
            objects; or folders with MDS data sets; or manifests, which are joined.
        progress: function that gets the numbers of finished shards and of all shards.

    Raises:
        ArgumentError: a file is of another format than the first one, or damaged.
        OSError: a file cannot be read or written.
    """
    if all(map(is_manifest, paths)):
        return merge_manifests(paths, out)
    extra = None
    sizes: dict[str, int] = {}
    if all(os.path.isdir(path) for path in paths):
        kind, (found, extra) = "mds", find_shards(paths)
        paths = list(found)
        sizes = found
    else:
        kind = _kind_of(paths[0])
    with ExitStack() as stack:
        writer = stack.enter_context(ManifestWriter(out, kind, is_remote=is_remote(paths[0]), extra=extra))
        for begin in range(0, len(paths), _AT_ONCE):
            part = list(paths[begin : begin + _AT_ONCE])
            for shard in _shards(kind, part, sizes):
                writer.add(shard)
            if progress is not None:
                progress(min(begin + _AT_ONCE, len(paths)), len(paths))
        writer.finish()
    return writer.samples


def _kind_of(path: str) -> str:
    """Return the format of the shards, by the name or the first bytes of one."""
    known = _KINDS.get(os.path.splitext(path)[1].lower())
    if known is not None:
        return known
    if is_remote(path):
        raise ArgumentError(f"expected an object with one of the endings {', '.join(_KINDS)}, got {brief(path)}")
    kind = find_kind(path)
    if kind not in _KINDS.values():
        raise ArgumentError(
            f"expected files of {', '.join(FORMAT_NAMES[k] for k in _KINDS.values())} for a manifest, got "
            f"{FORMAT_NAMES[kind]}: '{printable(path)}'"
        )
    return kind


def _shards(kind: str, paths: list[str], samples: dict[str, int]) -> Iterator[ShardRecords]:
    """Yield the records of some shards."""
    store = open_store(paths)
    try:
        versions = [_version(path) for path in paths] if store is None else []
        for number, (path, index) in enumerate(zip(paths, _indexes(kind, paths, samples, store), strict=True)):
            if store is None:
                size, tag = versions[number]
                yield _records(kind, path, size, tag, index)
                if _version(path) != (size, tag):
                    raise ArgumentError(f"'{printable(path)}' has changed while the manifest was made. Make it again")
            else:
                one = store.objects[path]
                yield _records(kind, path, one.size, one.etag or "", index)
    finally:
        if store is not None:
            store.close()


def _version(path: str) -> tuple[int, str]:
    """Return the size and the version of a file."""
    if not os.path.exists(path):
        raise ArgumentError(f"expected a file, there is none at '{printable(path)}'")
    return file_version(path)


def _indexes(
    kind: str, paths: list[str], samples: dict[str, int], store: RemoteStore | None
) -> Iterable[ContainerIndex]:
    if kind == "mds":
        return (read_offsets(path, samples[path]) for path in paths)
    if kind == "bagz":
        return (read_ends(path) if store is None else read_ends_of_object(path, store) for path in paths)
    return index_files(kind, paths, store)


def _records(kind: str, path: str, size: int, tag: str, index: ContainerIndex) -> ShardRecords:
    check_begin(path, index, FORMAT_NAMES[kind])
    if index.damage:
        raise ArgumentError(
            f"'{printable(path)}' is damaged at byte {index.damage_offset}: {index.damage}. Write the file again, or "
            "leave it out of the manifest"
        )
    if kind != "tar":
        return ShardRecords(path, size, tag, ("",), index.offset[:, None], index.length[:, None])
    extensions = _extensions(index.names)
    _, chosen = _native.group_members(index.names, [[name] for name in extensions], False)
    members = chosen.reshape(-1, len(extensions)) if extensions else np.empty((0, 0), np.int64)
    at, lacks = np.maximum(members, 0), members < 0
    offset = np.where(lacks, np.uint64(0), index.offset[at] if len(index) else np.uint64(0))
    length = np.where(lacks, _ABSENT, index.length[at] if len(index) else _ABSENT)
    return ShardRecords(path, size, tag, tuple(extensions), offset, length)


def _extensions(names: bytes) -> list[str]:
    """Return the extensions of a tar file's members, in the order in which they occur."""
    bases = (name.rpartition(b"/")[2] for name in names.split(b"\0")[:-1])
    found: dict[bytes, None] = dict.fromkeys(
        base.partition(b".")[2] for base in bases if not base.startswith(b".") and b"." in base
    )
    return [name.decode("utf-8", "surrogateescape") for name in found]


def manifest_facts(path: str) -> dict[str, Any]:
    """Return the facts about a manifest: format, numbers of shards and samples, bytes, components.

    Raises:
        StokerError: there is no such manifest, or it is damaged.
        OSError: a file cannot be read.
    """
    opened = open_manifest(path)
    try:
        total = sum(size for *_, size, _ in opened.shards())
    finally:
        opened.native.close()
    return {
        "path": path, "format": FORMAT_NAMES[opened.kind], "shards": opened.native.shards,
        "records": len(opened.native), "bytes": total,
        "components": {name: count for name, count in zip(opened.columns, opened.present, strict=True) if name},
        "faults": [],
    }  # fmt: skip
