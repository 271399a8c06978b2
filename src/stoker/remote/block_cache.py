# SPDX-License-Identifier: Apache-2.0
"""Blocks of remote objects on disk, and whole copies of objects.

An object has blocks of 4 MiB. A block is a file that never changes: it is written under a temporary name and renamed,
and its name has the object's identity. So processes share the folder without locks, and a block that is deleted while
it is read stays readable to its reader. The checksums of a block's pieces follow its bytes, so that a damaged block is
fetched again. They detect accidents; the folder must belong to the user.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError
from ..contract.private_folder import make_private_folder, require_private_folder
from ..contract.warning import warn
from ..native import _native
from ..settings import remote_cache

BLOCK_BYTES = 4 << 20
_PIECE_BYTES = 1 << 14  # bytes that have a checksum; a record is read with up to two pieces more
_SUM_BYTES = 4
_WRITTEN_BYTES = 1 << 19  # of one call of the system
COPY = "whole"  # name of a whole copy, with the blocks of its object
_USED_AGAIN_S = 60  # a block is marked as used at most this often
_NOT_KEPT = "blocks of remote objects are not kept: {}; set STOKER_REMOTE_CACHE to a folder of your own"


@dataclass(frozen=True)
class RemoteObject:
    """Object as it was when it was opened.

    Attributes:
        path: its address.
        size: its bytes.
        etag: the server's tag of this version; None if the server gives none.
        identity: digest of address, size and version.
    """

    path: str
    size: int
    etag: str | None
    identity: str

    def __hash__(self) -> int:
        return hash(self.identity)


def identity_of(path: str, size: int, version: str | None) -> str:
    """Return the digest that names the blocks of a version of an object (native: ``io/kept_shards.cpp``)."""
    return hashlib.blake2b(f"{path}\0{size}\0{version}".encode(), digest_size=16).hexdigest()


def write_pieces(file: Any, content: bytes | memoryview) -> None:
    """Write bytes to a file, a piece at a time.

    For a call with more than 1 MiB the system may look for as much contiguous memory, which costs ten times the copy
    (4 MiB in one call took 10 ms on Linux 6.18 with ext4, 1 ms in pieces).
    """
    view = memoryview(content)
    while view:
        view = view[file.write(view[:_WRITTEN_BYTES]) :]


class BlockCache:
    """Folder of blocks, bounded in bytes. The least recently used go first, and last those that rows will read.

    Args:
        folder: the folder.
        limit_bytes: its limit. Between two passes over the folder it may have a sixteenth more per process.
    """

    def __init__(self, folder: Path, limit_bytes: int) -> None:
        self._folder, self._limit_bytes = folder, limit_bytes
        self._lock = threading.Lock()
        self._unchecked = limit_bytes  # bytes written since the last pass; the first write makes one
        self._failed = False
        self._expected: set[str] = set()  # paths of blocks that rows of this process will read

    @classmethod
    def open(cls, in_flight: int) -> BlockCache | None:
        """Return the cache that the settings name; None, with a warning, if other users may write to its folder.

        Args:
            in_flight: greatest number of blocks in flight.

        Raises:
            ArgumentError: the limit is below the blocks that may be in flight.
        """
        found = remote_cache()
        if found is None:
            return None
        least = in_flight * BLOCK_BYTES
        if found[1] < least:
            raise ArgumentError(
                f"expected STOKER_REMOTE_CACHE_MIB of at least {least >> 20}, the blocks that may be in flight, got "
                f"{found[1] >> 20}; STOKER_REMOTE_CACHE=off keeps no blocks"
            )
        try:
            require_private_folder(found[0])
        except OSError as error:
            warn(_NOT_KEPT.format(error))
            return None
        return cls(*found)

    def _path(self, one: RemoteObject, block: int) -> Path:
        return self._folder / one.identity / str(block)

    @property
    def folder(self) -> Path:
        """Return the folder."""
        return self._folder

    @property
    def limit_bytes(self) -> int:
        """Return the limit of the folder."""
        return self._limit_bytes

    def expect(self, one: RemoteObject, block: int) -> bool:
        """Note that rows will read a block, which is evicted after all others then. Return whether to load it."""
        path = f"{self._folder}/{one.identity}/{block}"
        with self._lock:
            if path in self._expected:
                return False
            self._expected.add(path)
        return not os.path.exists(path)

    def is_kept(self, one: RemoteObject, block: int) -> bool:
        """Return whether a block is there, damaged or not."""
        return os.path.exists(f"{self._folder}/{one.identity}/{block}")

    def release(self, one: RemoteObject, block: int) -> None:
        """Note that the expected rows have read a block."""
        self._expected.discard(f"{self._folder}/{one.identity}/{block}")

    def native(
        self, objects: Sequence[RemoteObject], ranges: tuple[npt.NDArray[Any], ...], block_bytes: int
    ) -> _native.KeptBlocks:
        """Return the native reader of records out of the blocks, which marks blocks as used like :meth:`read`.

        Args:
            objects: the objects.
            ranges: (object, offset, length, form) of each record, inside of its object.
            block_bytes: bytes of a block.
        """
        folders = [f"{self._folder}/{one.identity}" for one in objects]
        sizes = np.asarray([one.size for one in objects], np.uint64)
        file, offset, length, form = ranges
        return _native.KeptBlocks(folders, sizes, file, offset, length, form, block_bytes, _PIECE_BYTES)

    def native_of_manifest(self, table: _native.ManifestTable, block_bytes: int) -> _native.KeptBlocks:
        """Return the native reader of a manifest's records out of the blocks.

        Args:
            table: the records.
            block_bytes: bytes of a block.
        """
        return _native.KeptBlocks.of_manifest(table, os.fspath(self._folder), block_bytes, _PIECE_BYTES)

    def forget_expected(self) -> None:
        """Forget which blocks rows will read."""
        with self._lock:
            self._expected.clear()

    def read(self, one: RemoteObject, block: int, begin: int, end: int) -> bytes | None:
        """Return the bytes ``begin`` to ``end`` of a block; None if it is not there or damaged."""
        path = f"{self._folder}/{one.identity}/{block}"
        self._expected.discard(path)
        try:
            file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            status = os.fstat(file)
            bytes_of_block = min(BLOCK_BYTES, one.size - block * BLOCK_BYTES)
            if status.st_size != bytes_of_block + _SUM_BYTES * -(-bytes_of_block // _PIECE_BYTES):
                return None
            first, last = begin // _PIECE_BYTES, -(-end // _PIECE_BYTES)
            start = first * _PIECE_BYTES
            content = os.pread(file, min(last * _PIECE_BYTES, bytes_of_block) - start, start)
            sums = os.pread(file, _SUM_BYTES * (last - first), bytes_of_block + _SUM_BYTES * first)
            if time.time() - status.st_mtime > _USED_AGAIN_S:
                os.utime(file)  # marks the block as recently used
        except OSError:
            return None
        finally:
            os.close(file)
        return content[begin - start : end - start] if _sums(content) == sums else None

    def write(self, one: RemoteObject, block: int, content: bytes | memoryview) -> None:
        """Keep a block. A folder that cannot be written costs time but no results."""
        path = self._path(one, block)
        try:
            make_private_folder(self._folder)
            path.parent.mkdir(exist_ok=True)
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
            try:
                with os.fdopen(handle, "wb", buffering=0) as file:
                    write_pieces(file, content)
                    write_pieces(file, _sums(content))
                os.replace(name, path)
            except BaseException:
                os.unlink(name)
                raise
            self.bound(len(content))
        except OSError as error:
            if not self._failed:
                self._failed = True
                warn(_NOT_KEPT.format(error))

    def bound(self, written: int) -> None:
        """Count written bytes, and delete blocks if there are too many."""
        with self._lock:
            self._unchecked += written
            if self._unchecked < self._limit_bytes // 16:
                return
            self._unchecked = 0
        with open(self._folder / ".lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:  # another process makes the pass
                return
            self._evict()

    def _evict(self) -> None:
        kept: list[tuple[bool, float, int, Path]] = []
        for path in self._folder.glob("*/*"):
            with contextlib.suppress(OSError):  # another process deleted it
                status = path.stat()
                kept.append((str(path) in self._expected, status.st_mtime, status.st_size, path))
        total = sum(size for *_, size, _ in kept)
        for *_, size, path in sorted(kept):
            if total <= self._limit_bytes - self._limit_bytes // 16:
                return
            if path.name == COPY:
                if not _delete_copy(path):
                    continue
            else:
                path.unlink(missing_ok=True)
            total -= size
            with contextlib.suppress(OSError):  # other blocks are in it
                path.parent.rmdir()


def _delete_copy(path: Path) -> bool:
    """Delete a whole copy, unless a process uses it. Users have it open and locked (``copies.py``)."""
    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink(missing_ok=True)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _sums(content: bytes | memoryview) -> bytes:
    """Return the checksums of the pieces of a part of a block, which begins with a piece."""
    return _native.crc32c_of_pieces(content, _PIECE_BYTES)
