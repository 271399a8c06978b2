# SPDX-License-Identifier: Apache-2.0
"""Objects of a store as files of a temporary folder, a portion at a time, for commands that read each object once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from ..contract.errors import ArgumentError, DataError
from ..contract.text import reason_of
from ..remote.addresses import folder_of, join, require_address
from ..remote.block_cache import RemoteObject
from ..remote.store import RemoteStore, objects_below
from .container_format import DATA_SET_INDEX, is_lance_version, is_litdata_chunk
from .survey import Finding, Remark

_AT_ONCE = 16  # objects that are copied at the same time
_PORTION_BYTES = 256 << 20
_PORTION_OBJECTS = 512


@dataclass
class _Group:
    """Objects that are only understood together, by their names: own ones, and ones that other groups need, too."""

    own: dict[str, RemoteObject]
    indexes: dict[str, RemoteObject] = field(default_factory=dict)


@dataclass
class Copies:
    """Portion of the objects below an address, as files of a temporary folder.

    Attributes:
        folder: the folder.
        addresses: addresses of the objects, by the paths of their files relative to the folder.
        indexes: files that only belong to other ones, such as the index of an MDS data set.
        failed: findings about objects that could not be read.
    """

    folder: Path
    addresses: dict[str, str] = field(default_factory=dict)
    indexes: set[Path] = field(default_factory=set)
    failed: list[Finding] = field(default_factory=list)


def list_objects(address: str) -> dict[str, RemoteObject | None]:
    """Return the objects below an address by their names; for an object alone, its name without its facts.

    Raises:
        ArgumentError: the address cannot be read, or the store refuses a list.
        UnsupportedError: obstore is not installed.
    """
    require_address("PATH", address, may_be_bucket=True)
    parts = urlsplit(address)
    if parts.scheme.lower() not in ("http", "https"):  # servers without lists
        found = objects_below("PATH", address)
        if found:
            return {name: one for name, one in found.items() if not _is_hidden(name)}
    return {unquote(PurePosixPath(parts.path).name): None}


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") and part != ".." for part in name.split("/"))


def copies_of(address: str, listed: Mapping[str, RemoteObject | None]) -> Generator[Copies]:
    """Yield the objects below an address in portions. A portion is deleted when the next one is taken.

    A portion has at most 256 MiB, or else one object or one data set.

    Args:
        address: the address.
        listed: the objects, as :func:`list_objects` returns them.

    Raises:
        ArgumentError: an object that was given alone does not exist.
        OSError: the copies cannot be written.
    """
    known = {one.path: one for one in listed.values() if one is not None}
    paths = {name: address if one is None else one.path for name, one in listed.items()}
    with closing(RemoteStore(list(paths.values()), known, keeps_blocks=False)) as store:
        groups = _groups({name: store.objects[path] for name, path in paths.items()})
        if None in listed.values():
            _add_index(groups[0], address, store)
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="stoker-copies") as pool:
            for portion in _portions(groups):
                with tempfile.TemporaryDirectory(prefix="stoker-check-") as folder:
                    yield _copy_portion(store, portion, Path(folder), pool)


def _add_index(group: _Group, address: str, store: RemoteStore) -> None:
    """Add the index of its data set to an MDS shard that was given alone. The check reports a missing one."""
    if not address.endswith(".mds"):
        return
    path = join(folder_of(address), DATA_SET_INDEX)
    with suppress(ArgumentError), closing(RemoteStore([path], keeps_blocks=False)) as found:
        store.objects[path] = group.indexes[DATA_SET_INDEX] = found.objects[path]


def _copy_portion(store: RemoteStore, groups: Sequence[_Group], folder: Path, pool: ThreadPoolExecutor) -> Copies:
    found = Copies(folder)
    own = {name: one for group in groups for name, one in group.own.items()}
    indexes = {name: one for group in groups for name, one in group.indexes.items() if name not in own}
    found.indexes = {folder / name for name in indexes}
    wanted = list((own | indexes).items())
    faults = pool.map(lambda item: _copy(store, item[0], item[1], folder), wanted)
    for (name, one), fault in zip(wanted, faults, strict=True):
        found.addresses[name] = one.path
        if fault is not None:
            found.failed.append(fault)
    return found


def _copy(store: RemoteStore, name: str, one: RemoteObject, folder: Path) -> Finding | None:
    """Copy an object, and return the finding if that fails."""
    path = folder / name
    if os.path.commonpath([folder, os.path.normpath(path)]) != str(folder):
        return Finding(one.path, Remark.UNREADABLE, "expected a name inside of its folder")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as file:
            store.read_all(one.path, file)
    except (DataError, FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        with suppress(OSError):
            path.unlink()
        return Finding(one.path, Remark.UNREADABLE, reason_of(error))
    return None


def _groups(objects: Mapping[str, RemoteObject]) -> list[_Group]:
    """Return the objects, with those together that are only understood together."""
    paths = {name: PurePosixPath(name) for name in objects}
    lance = {path.parent.parent for path in paths.values() if is_lance_version(path)}
    chunks = {path.parent for path in paths.values() if is_litdata_chunk(path.name)}
    litdata = {folder for folder in chunks if str(folder / DATA_SET_INDEX) in objects}
    sets: dict[PurePosixPath, _Group] = {}
    found: list[_Group] = []
    for name, one in objects.items():
        path = paths[name]
        above = next((folder for folder in path.parents if folder in lance), None)
        if above is None and path.parent in litdata and (path.name == DATA_SET_INDEX or is_litdata_chunk(path.name)):
            above = path.parent
        index = str(path.parent / DATA_SET_INDEX)
        if above is not None:
            if above not in sets:
                sets[above] = _Group({})
                found.append(sets[above])
            sets[above].own[name] = one
        elif path.suffix == ".mds" and index in objects:
            found.append(_Group({name: one}, {index: objects[index]}))
        else:
            found.append(_Group({name: one}))
    return found


def _portions(groups: Sequence[_Group]) -> Iterator[list[_Group]]:
    portion: list[_Group] = []
    held = count = 0
    for group in groups:
        size = sum(one.size for one in group.own.values())
        if portion and (held + size > _PORTION_BYTES or count + len(group.own) > _PORTION_OBJECTS):
            yield portion
            portion, held, count = [], 0, 0
        portion.append(group)
        held, count = held + size, count + len(group.own)
    if portion:
        yield portion
