# SPDX-License-Identifier: Apache-2.0
"""Whole objects: files that libraries need on this machine, and objects as seekable files.

A copy is a file in the folder of the block cache. It stays while a process uses it, which has it open and locked; the
cache evicts it afterwards. Copies of one version of an object are made once, for all processes.
"""

from __future__ import annotations

import fcntl
import functools
import io
import os
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..contract.errors import ArgumentError, DataError
from ..contract.private_folder import make_private_folder
from .addresses import is_remote, require_address
from .block_cache import COPY, BlockCache, RemoteObject
from .store import RemoteStore

_AT_ONCE = 8  # objects that are copied at the same time
_LIMIT_WITHOUT_CACHE = 16 << 30  # bytes of the temporary folder
_LOCK = threading.Lock()
_OPEN: dict[str, tuple[str, int, int]] = {}  # identity: path, size and descriptor of the copies this process uses


@functools.cache
def _temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """Return the folder of copies without a cache, which is deleted with the process."""
    return tempfile.TemporaryDirectory(prefix="stoker-copies-")


def local_copies(name: str, paths: Sequence[str], known: Mapping[str, RemoteObject] | None = None) -> list[str]:
    """Return paths of files: the given ones, with copies in place of objects. The process uses them until it ends.

    Args:
        name: name of the argument that has the paths, for messages.
        paths: paths of files, and addresses of objects.
        known: facts of objects that a list has given, by their addresses.

    Raises:
        ArgumentError: an object cannot be read, or all copies of this process would be larger than the cache.
        OSError: the copies cannot be written.
    """
    remote = list(dict.fromkeys(path for path in paths if is_remote(path)))
    if not remote:
        return list(paths)
    for path in remote:
        require_address(name, path)
    cache = BlockCache.open(1)
    folder, limit = (
        (Path(_temporary_folder().name), _LIMIT_WITHOUT_CACHE) if cache is None else (cache.folder, cache.limit_bytes)
    )
    store = RemoteStore(remote, known, keeps_blocks=False)
    try:
        _require_room([store.objects[path] for path in remote], limit)
        make_private_folder(folder)
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="stoker-copies") as pool:
            made = pool.map(lambda path: _copy(store, store.objects[path], folder, cache), remote)
            found = dict(zip(remote, made, strict=True))
    except DataError as error:
        raise ArgumentError(str(error)) from None
    finally:
        store.close()
    return [found.get(path, path) for path in paths]


def local_copy(name: str, path: str) -> str:
    """Return the path of a file: the given one, or that of an object's copy (:func:`local_copies`)."""
    return local_copies(name, [path])[0]


def _require_room(objects: Sequence[RemoteObject], limit: int) -> None:
    with _LOCK:
        used = sum(size for _, size, _ in _OPEN.values())
        more = sum(one.size for one in objects if one.identity not in _OPEN)
    if used + more > limit:
        raise ArgumentError(
            f"expected objects of at most {limit >> 20} MiB that are copied to this machine as a whole, got "
            f"{(used + more) >> 20} MiB such as '{objects[0].path}'. STOKER_REMOTE_CACHE_MIB is the limit"
        )


def _copy(store: RemoteStore, one: RemoteObject, folder: Path, cache: BlockCache | None) -> str:
    """Return the path of an object's copy, which this process has open and locked."""
    with _LOCK:
        known = _OPEN.get(one.identity)
    if known is not None and os.path.exists(known[0]):
        return known[0]
    path = folder / one.identity / COPY
    while True:
        descriptor = _open_locked(path, one.size)
        if descriptor is not None:
            break
        path.parent.mkdir(exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                store.read_all(one.path, file)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
        if cache is not None:
            cache.bound(one.size)
    with _LOCK:
        if one.identity in _OPEN:  # another thread was faster
            os.close(descriptor)
        else:
            _OPEN[one.identity] = (str(path), one.size, descriptor)
    return str(path)


def _open_locked(path: Path, size: int) -> int | None:
    """Return a locked descriptor of a copy; None if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        os.utime(descriptor)  # marks the copy as recently used
        status = os.fstat(descriptor)
        if status.st_size == size and os.stat(path).st_ino == status.st_ino:
            return descriptor
    except FileNotFoundError:  # evicted before it was locked
        pass
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


class ObjectFile(io.RawIOBase):
    """Object as a file for libraries that read and seek.

    Args:
        store: the store.
        path: the object's address.
    """

    def __init__(self, store: RemoteStore, path: str) -> None:
        super().__init__()
        self._store, self._path, self._at = store, path, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._store.objects[self._path].size}[whence]
        if base + offset < 0:
            raise ValueError(f"expected a position of at least 0, got {base + offset}")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        count = max(0, min(len(view), self._store.objects[self._path].size - self._at))
        view[:count] = self._store.read(self._path, self._at, count)
        self._at += count
        return count
