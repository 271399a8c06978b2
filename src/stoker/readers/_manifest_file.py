# SPDX-License-Identifier: Apache-2.0
"""Manifests: data sets of very many shards in two files, a table of shards and the ranges of all records.

``NAME.manifest``: eight bytes of magic, a digest of all that follows (16 bytes), the length of a header (4 bytes), the
header (JSON), the table (40 bytes a shard, ``native/io/manifest.hpp: ManifestShard``), and the names of the shards,
each with a zero byte and the tag of its version: an object's ETag, or the modification time in nanoseconds and the
checksum of sampled pieces of a file. ``NAME.manifest.records``: eight bytes of magic, a digest of the
entries (16 bytes), eight zero bytes, and an entry of 20 bytes (``ManifestEntry``) per sample and component. The digest
of the entries is in the header too, so that the two files belong together. All numbers are little-endian.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError
from ..contract.text import brief, printable
from ..native import _native

SUFFIX = ".manifest"
_MAGIC, _ENTRIES_MAGIC = b"STKMANI1", b"STKRECS1"
_DIGEST_BYTES, _ENTRY_BYTES, _ENTRIES_HEADER = 16, 20, 32
_BEGIN = len(_MAGIC) + _DIGEST_BYTES + 4
_ROW = struct.Struct("<QQQQII")  # first sample, first entry, bytes, begin of name and tag, their bytes, columns
_MOST_COLUMNS = 256
_ABSENT = np.uint64(0xFFFFFFFFFFFFFFFF)
_CHUNK = 1 << 23
Longs = npt.NDArray[np.uint64]


def is_manifest(path: str) -> bool:
    """Return whether a path is that of a manifest, by its ending."""
    return path.endswith(SUFFIX)


def entries_path(path: str) -> str:
    """Return the path of the second file of a manifest."""
    return path + ".records"


@dataclass(frozen=True)
class ShardRecords:
    """One shard, as a manifest lists it.

    Attributes:
        name: path of the file, or address of the object.
        size: its bytes.
        tag: tag of its version: an object's ETag, or that of a file from `file_version`; "": only sizes are compared.
        columns: names of the components; one "" if records have no names.
        offset: first byte of each component of each sample, uint64 ``(samples, columns)``.
        length: bytes of each component; all bits set if the sample lacks it.
    """

    name: str
    size: int
    tag: str
    columns: tuple[str, ...]
    offset: Longs
    length: Longs


class ManifestWriter:
    """Writer of a manifest. The two files appear under their names when they are complete.

    Args:
        path: path of the manifest.
        kind: format of the shards.
        is_remote: the shards are objects of a store.
        extra: facts that readers of the format need, for the header.
    """

    def __init__(self, path: str, kind: str, *, is_remote: bool = False, extra: Any = None) -> None:
        if not is_manifest(path):
            raise ArgumentError(f"expected the path of a manifest to end with {SUFFIX!r}, got {brief(path)}")
        self._path, self._kind, self._is_remote, self._extra = path, kind, is_remote, extra
        self._root = root_of(path)
        self._columns: dict[str, int] = {}
        self._present: list[int] = []
        self._table, self._texts = bytearray(), bytearray()
        self.samples = self._entries = self.shards = 0
        self._digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        self._file: BinaryIO = open(entries_path(path) + ".new", "wb")  # noqa: SIM115 - closed by `close`
        self._file.write(bytes(_ENTRIES_HEADER))

    def add(self, shard: ShardRecords) -> None:
        """Append a shard.

        Raises:
            ArgumentError: the shards have too many kinds of components.
        """
        for name in shard.columns:
            if name not in self._columns:
                self._columns[name] = len(self._columns)
                self._present.append(0)
        width, count = len(self._columns), len(shard.offset)
        if width > _MOST_COLUMNS:
            raise ArgumentError(
                f"expected samples with at most {_MOST_COLUMNS} kinds of components, got more with "
                f"{brief(shard.name)}: {', '.join(list(self._columns)[:5])}, ..."
            )
        numbers = [self._columns[name] for name in shard.columns]
        offset, length = np.zeros((count, width), np.uint64), np.full((count, width), _ABSENT)
        offset[:, numbers], length[:, numbers] = shard.offset, shard.length
        for number, found in zip(numbers, (shard.length != _ABSENT).sum(axis=0), strict=True):
            self._present[number] += int(found)
        self.add_packed(shard, self._entries, count, width)
        entries = _native.pack_entries(self._entries, offset.reshape(-1), length.reshape(-1))
        self._digest.update(entries)
        self._file.write(entries)
        self._entries += count * width

    def add_packed(self, shard: ShardRecords, first: int, samples: int, width: int) -> None:
        """Append a row of the table, for entries that are written elsewhere."""
        name, tag = os.fsencode(self._name_of(shard.name)) + b"\0", shard.tag.encode()
        text = name + tag
        self._table += _ROW.pack(self.samples, first, shard.size, len(self._texts), len(text), width)
        self._texts += text
        # States restore with a manifest of copied files, whose modification times differ.
        self._digest.update(text if self._is_remote else name)
        self._digest.update(shard.size.to_bytes(8, "little"))
        self.samples += samples
        self.shards += 1

    def _name_of(self, path: str) -> str:
        """Return the name of a shard: a file's is relative to the folder of the manifest."""
        if self._is_remote:
            return path
        if self._root and path.startswith(self._root):
            return path[len(self._root) :]
        return os.path.relpath(path, os.path.dirname(self._path) or ".")

    def finish(self) -> None:
        """Write the table and rename the files."""
        identity = self._digest.digest()
        self._file.seek(0)
        self._file.write(_ENTRIES_MAGIC + identity)
        self._file.close()
        header = json.dumps({
            "kind": self._kind, "shards": self.shards, "samples": self.samples, "entries": self._entries,
            "columns": list(self._columns), "present": self._present, "records": identity.hex(),
            "is_remote": self._is_remote, "extra": self._extra,
        }, sort_keys=True).encode()  # fmt: skip
        parts = (len(header).to_bytes(4, "little"), header, self._table, self._texts)
        digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
        for part in parts:
            digest.update(part)
        with open(self._path + ".new", "wb") as file:
            file.writelines((_MAGIC, digest.digest(), *parts))
        os.replace(entries_path(self._path) + ".new", entries_path(self._path))
        os.replace(self._path + ".new", self._path)

    def close(self) -> None:
        """Close the file, and delete it if it is incomplete; idempotent."""
        if not self._file.closed:
            self._file.close()
            os.unlink(self._file.name)

    def __enter__(self) -> ManifestWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@dataclass(frozen=True)
class OpenManifest:
    """Manifest whose table has been read and checked.

    Attributes:
        path: its path.
        kind: format of the shards.
        columns: names of the components.
        present: number of samples that have each component.
        digest: digest of names, sizes and ranges, hexadecimal.
        is_remote: the shards are objects of a store.
        extra: further facts about the format.
        native: table of shards.
    """

    path: str
    kind: str
    columns: tuple[str, ...]
    present: tuple[int, ...]
    digest: str
    is_remote: bool
    extra: Any
    native: _native.Manifest

    def shards(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield path, tag, size and number of samples of every shard."""
        root = "" if self.is_remote else root_of(self.path)
        count = self.native.shards
        for number in range(count):
            start, _, size, _ = self.native.shard(number)
            end = self.native.shard(number + 1)[0] if number + 1 < count else len(self.native)
            name, tag = self.native.text(number)
            yield root + os.fsdecode(name), tag.decode(), size, end - start

    def ranges(self, number: int) -> tuple[Longs, Longs]:
        """Return offsets and lengths of all components of a shard's samples, uint64 ``(samples, columns)``.

        Raises:
            OSError: the file of records cannot be read, or is damaged.
        """
        start, first, _, width = self.native.shard(number)
        end = self.native.shard(number + 1)[0] if number + 1 < self.native.shards else len(self.native)
        count = (end - start) * width
        with open(entries_path(self.path), "rb") as file:
            file.seek(_ENTRIES_HEADER + first * _ENTRY_BYTES)
            packed = file.read(count * _ENTRY_BYTES)
        try:
            if len(packed) < count * _ENTRY_BYTES:
                raise ValueError(f"it ends within the entries of shard {number}")
            offset, length = _native.unpack_entries(first, packed)
        except ValueError as error:
            raise OSError(f"'{printable(entries_path(self.path))}' is damaged: {error}") from None
        return offset.reshape(-1, width), length.reshape(-1, width)


def file_version(path: str) -> tuple[int, str]:
    """Return the size of a file in bytes, and the tag of its version: ``"TIME:CHECKSUM"``.

    The time is the file's modification time in nanoseconds. The checksum is the CRC-32C of 16 pieces of 4 KiB, the
    first at the begin and the last at the end of the file, with equal distances; of all bytes if the file has at most
    64 KiB.

    Raises:
        OSError: the file cannot be read.
    """
    return _native.file_version(os.fsencode(path))


def root_of(path: str) -> str:
    """Return the prefix of the names of shards that are files: the folder of the manifest."""
    folder = os.path.dirname(path)
    return os.path.join(folder, "") if folder else ""


def open_manifest(path: str) -> OpenManifest:
    """Read the table of a manifest, and check both files.

    Raises:
        ArgumentError: there is no such manifest, or it is damaged.
        OSError: a file cannot be read.
    """
    try:
        with open(path, "rb") as file:
            _check_digest(path, file)
            return _read(path, file)
    except (FileNotFoundError, IsADirectoryError):
        raise ArgumentError(f"expected a manifest, there is none at '{printable(path)}'") from None


def _check_digest(path: str, file: BinaryIO) -> None:
    """Compare the digest. The file is read in pieces, because names need not be in memory."""
    head = file.read(len(_MAGIC) + _DIGEST_BYTES)
    if head[: len(_MAGIC)] != _MAGIC:
        raise ArgumentError(f"expected a manifest, got another format in '{printable(path)}'")
    digest, piece = hashlib.blake2b(digest_size=_DIGEST_BYTES), bytearray(_CHUNK)
    while count := file.readinto(piece):  # type: ignore[attr-defined]
        digest.update(memoryview(piece)[:count])
    if digest.digest() != head[len(_MAGIC) :]:
        raise ArgumentError(f"expected a manifest, got a damaged one in '{printable(path)}': its digest is wrong")


def _read(path: str, file: BinaryIO) -> OpenManifest:
    file.seek(_BEGIN - 4)
    header_bytes = int.from_bytes(file.read(4), "little")
    header = json.loads(file.read(header_bytes))
    table = np.fromfile(file, np.uint8, header["shards"] * _ROW.size)
    root = "" if header["is_remote"] else root_of(path)
    texts_begin = _BEGIN + header_bytes + len(table)
    names = os.fsencode(path), texts_begin, os.fsencode(entries_path(path)), os.fsencode(root)
    try:
        native = _native.Manifest(*names, table, header["samples"], header["entries"])
    except ValueError as error:
        raise ArgumentError(f"expected a manifest, got a damaged one in '{printable(path)}': {error}") from None
    _check_entries(path, bytes.fromhex(header["records"]), header["entries"])
    return OpenManifest(
        path, header["kind"], tuple(header["columns"]), tuple(header["present"]), header["records"],
        header["is_remote"], header["extra"], native,
    )  # fmt: skip


def _check_entries(path: str, identity: bytes, entries: int) -> None:
    """Compare the header and the size of the file of records."""
    name = entries_path(path)
    try:
        with open(name, "rb") as file:
            head, size = file.read(_ENTRIES_HEADER), os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise ArgumentError(f"expected '{printable(name)}' next to its manifest, there is no such file") from None
    if head[: len(_ENTRIES_MAGIC) + _DIGEST_BYTES] != _ENTRIES_MAGIC + identity:
        raise ArgumentError(f"expected the records of '{printable(path)}' in '{printable(name)}', got others")
    wanted = _ENTRIES_HEADER + entries * _ENTRY_BYTES
    if size != wanted:
        raise ArgumentError(f"expected '{printable(name)}' with {wanted} bytes, got {size}")


def merge_manifests(parts: Sequence[str], out: str) -> int:
    """Write a manifest with the shards of others, in their order, and return the number of its samples.

    Raises:
        ArgumentError: a part is damaged, or they are of several formats.
        OSError: a file cannot be read or written.
    """
    opened = [open_manifest(path) for path in parts]
    with contextlib.ExitStack() as stack:
        for one in opened:
            stack.callback(one.native.close)
        facts = {(one.kind, one.is_remote, json.dumps(one.extra)) for one in opened}
        if len(facts) > 1:
            raise ArgumentError(f"expected manifests of one format, got {sorted({one.kind for one in opened})}")
        first = opened[0]
        writer = stack.enter_context(ManifestWriter(out, first.kind, is_remote=first.is_remote, extra=first.extra))
        for one in opened:
            for number, (name, tag, size, _) in enumerate(one.shards()):
                offset, length = one.ranges(number)
                writer.add(ShardRecords(name, size, tag, one.columns[: offset.shape[1]], offset, length))
        writer.finish()
        return writer.samples
