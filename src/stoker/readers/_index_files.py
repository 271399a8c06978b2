# SPDX-License-Identifier: Apache-2.0
"""Indexes of container files: the records and their ranges, found in one native pass and kept in a cache folder.

An entry of the cache belongs to a path and is valid while the file keeps its size, modification time and inode. Entries
are written under a temporary name and renamed when they are complete, so processes share the folder without locks.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import ArgumentError
from ..contract.private_folder import make_private_folder, require_private_folder
from ..contract.text import printable
from ..contract.warning import warn
from ..native import _native
from ..remote.store import RemoteStore
from ..settings import default_threads, index_cache
from ._file_state import FileState

_MAGIC = b"STKINDX1"
_DIGEST_BYTES = 16
_HEAD = struct.Struct("<QqQQQQQ")  # size, modification time, inode, records, bytes of names, damaged byte, its text
_LEAST_BYTES = 1 << 20  # smaller files are scanned faster than an entry is found
_SETTLED_NS = 2_000_000_000  # a file that was written within this time may change again without a sign
Longs = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class ContainerIndex:
    """Records of one container file.

    Attributes:
        offset: first byte of each record.
        length: bytes of each record.
        names: names of the records, each followed by a zero byte; empty for formats without names.
        damage_offset: byte from which on the file is damaged.
        damage: description of the damage; "" if there is none.
        state: state of the file that has these records; None if it is not known.
    """

    offset: Longs
    length: Longs
    names: bytes = b""
    damage_offset: int = 0
    damage: str = ""
    state: FileState | None = None

    def __len__(self) -> int:
        return len(self.offset)


def _records(scan: Callable[[bytes], Any]) -> Callable[[bytes], ContainerIndex]:
    def run(path: bytes) -> ContainerIndex:
        offset, length, at, damage = scan(path)
        return ContainerIndex(offset, length, b"", at, damage)

    return run


def _members(scan: Callable[[bytes], Any]) -> Callable[[bytes], ContainerIndex]:
    return lambda path: ContainerIndex(*scan(path))


SCANS: dict[str, Callable[[bytes], ContainerIndex]] = {
    "tfrecord": _records(_native.scan_tfrecord),
    "recordio": _records(_native.scan_recordio),
    "lmdb": _records(_native.scan_lmdb),
    "tar": _members(_native.scan_tar),
    "zip": _members(_native.scan_zip),
}


def index_files(kind: str, paths: Sequence[str], store: RemoteStore | None = None) -> list[ContainerIndex]:
    """Return the indexes of files, from the cache or by a scan of their headers.

    Args:
        kind: format of the files, one of ``SCANS``.
        paths: the files, or objects of the store.
        store: the store of the objects. A scan reads them once as a whole.

    Raises:
        ArgumentError: there is no such file.
        OSError: a file cannot be read.
    """
    folder = _cache_folder()
    if store is not None:
        return [_index_object(kind, path, folder, store) for path in paths]
    for path in paths:
        if not os.path.exists(path):
            raise ArgumentError(f"expected a file, there is none at '{printable(path)}'")
    count = min(len(paths), default_threads())
    if count <= 1:
        return [index_file(kind, path, folder) for path in paths]
    with ThreadPoolExecutor(count, thread_name_prefix="stoker-index") as pool:
        return list(pool.map(lambda path: index_file(kind, path, folder), paths))


def index_file(kind: str, path: str, folder: Path | None) -> ContainerIndex:
    """Return the index of one file. ``folder`` is the cache; None: there is none."""
    name = os.path.abspath(path)
    entry = None if folder is None else folder / _entry_name(kind, name)
    before = os.stat(name)
    if entry is not None:
        known = _read(entry, _state(before))
        if known is not None:
            return replace(known, state=_state(before))
    index = SCANS[kind](os.fsencode(name))
    after = os.stat(name)
    if _state(before) == _state(after):
        index = replace(index, state=_state(after))
    is_settled = _state(before) == _state(after) and time.time_ns() - after.st_mtime_ns > _SETTLED_NS
    if entry is not None and is_settled and after.st_size >= _LEAST_BYTES:
        _write(entry, _state(after), index)
    return index


def _index_object(kind: str, path: str, folder: Path | None, store: RemoteStore) -> ContainerIndex:
    """Return the index of an object. Its identity takes the place of a file's time and inode."""
    one = store.objects[path]
    entry = None if folder is None else folder / _entry_name(kind, path)
    state = one.size, int(one.identity[:15], 16), int(one.identity[16:], 16)
    known = None if entry is None else _read(entry, state)
    if known is not None:
        return known
    with tempfile.NamedTemporaryFile(prefix="stoker-") as file:
        store.read_all(path, file)
        file.flush()
        index = SCANS[kind](os.fsencode(file.name))
    if entry is not None:
        _write(entry, state, index)
    return index


def _cache_folder() -> Path | None:
    found = index_cache()
    if found is None:
        return None
    try:
        require_private_folder(found[0])
    except OSError as error:
        warn(f"indexes of container files are not kept: {error}; set STOKER_INDEX_CACHE to a folder of your own")
        return None
    return found[0]


def _entry_name(kind: str, path: str) -> str:
    return f"{hashlib.blake2b(os.fsencode(path), digest_size=16).hexdigest()}.{kind}"


def _state(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ino


def _read(entry: Path, wanted: tuple[int, int, int]) -> ContainerIndex | None:
    """Return an entry of the cache; None if there is none for this state of the file, or if it is damaged."""
    try:
        data = entry.read_bytes()
    except OSError:
        return None
    start = len(_MAGIC) + _DIGEST_BYTES
    body = memoryview(data)[start:]
    if data[: len(_MAGIC)] != _MAGIC or len(body) < _HEAD.size:
        return None
    *state, records, names, at, text = _HEAD.unpack_from(body)
    if tuple(state) != wanted or _HEAD.size + 16 * records + names + text != len(body):
        return None
    if hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest() != data[len(_MAGIC) : start]:
        return None
    with contextlib.suppress(OSError):  # the folder may be read-only
        os.utime(entry)  # marks the entry as recently used
    arrays = np.frombuffer(data, np.uint64, 2 * records, start + _HEAD.size)
    rest = bytes(body[_HEAD.size + 16 * records :])
    return ContainerIndex(arrays[:records], arrays[records:], rest[:names], at, rest[names:].decode())


def _write(entry: Path, state: tuple[int, int, int], index: ContainerIndex) -> None:
    """Write the index of a file. A cache that cannot be written costs time but no results."""
    text = index.damage.encode()
    head = _HEAD.pack(*state, len(index), len(index.names), index.damage_offset, len(text))
    parts = (head, index.offset.tobytes(), index.length.tobytes(), index.names, text)
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    _store(entry, lambda file: file.writelines((_MAGIC, digest.digest(), *parts)))


def _store(entry: Path, write: Callable[[Any], object]) -> None:
    """Write an entry under a temporary name and rename it. A failure is a warning."""
    found = index_cache()
    try:
        make_private_folder(entry.parent)
        handle, name = tempfile.mkstemp(dir=entry.parent, prefix=".new-")
        try:
            with os.fdopen(handle, "wb") as file:
                write(file)
            os.replace(name, entry)
        except BaseException:
            os.unlink(name)
            raise
        _trim(entry.parent, found[1] if found else 0)
    except OSError as error:
        hint = "set STOKER_INDEX_CACHE to a folder that can be written"
        warn(f"indexes of container files are not kept: {error}; {hint}")


_ARRAYS = ("coco", "video")  # kinds of entries with arrays, as NumPy's .npz files


def cached_arrays(
    kind: str, path: str, names: Sequence[str], parse: Callable[[], Mapping[str, npt.NDArray[Any]]],
    least_bytes: int | None = None,
) -> dict[str, npt.NDArray[Any]]:  # fmt: skip
    """Return arrays that were found in a file, from the cache or by ``parse``.

    Args:
        kind: kind of the entry, one of those in ``_ARRAYS``.
        path: the file.
        names: names of the arrays.
        parse: function that finds them.
        least_bytes: files that are smaller are parsed each time; by default those below 1 MiB.

    Raises:
        OSError: the file cannot be read.
    """
    folder, name = _cache_folder(), os.path.abspath(path)
    before = os.stat(name)
    entry = None if folder is None else folder / _entry_name(kind, name)
    state = np.asarray(_state(before), np.int64)
    if entry is not None and entry.exists():
        with contextlib.suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            with open(entry, "rb") as file, np.load(file, allow_pickle=False) as found:
                arrays = {key: found[key] for key in names}
                is_valid = np.array_equal(found["state"], state)
            if is_valid:
                with contextlib.suppress(OSError):  # the folder may be read-only
                    os.utime(entry)  # marks the entry as recently used
                return arrays
    arrays = dict(parse())
    after = os.stat(name)
    is_settled = _state(before) == _state(after) and time.time_ns() - after.st_mtime_ns > _SETTLED_NS
    if entry is not None and is_settled and after.st_size >= (_LEAST_BYTES if least_bytes is None else least_bytes):
        _store(entry, lambda file: np.savez(file, state=state, **arrays))
    return arrays


def _trim(folder: Path, limit_bytes: int) -> None:
    """Delete the least recently used entries until the folder is within its limit."""
    kept = []
    for kind in (*SCANS, *_ARRAYS):
        for path in folder.glob(f"*.{kind}"):
            with contextlib.suppress(OSError):  # another process deleted it
                status = path.stat()
                kept.append((status.st_mtime_ns, status.st_size, path))
    total = sum(size for _, size, _ in kept)
    for _, size, path in sorted(kept)[:-1]:
        if total <= limit_bytes:
            break
        path.unlink(missing_ok=True)
        total -= size
