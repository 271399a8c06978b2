# SPDX-License-Identifier: Apache-2.0
"""Folders of files, and of objects of a store, which readers list in the same way; whole files and objects as records.

A name in a folder is relative to it. "%" begins an escape in an address, but is an ordinary character in a name.
"""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import numpy as np

from ..contract.errors import ArgumentError
from ..contract.text import printable
from ..remote.addresses import is_remote, join, require_address
from ..remote.block_cache import RemoteObject
from ..remote.copies import local_copies
from ..remote.store import objects_below, open_store, sizes_of
from ._fetching import AsyncStorage
from ._storages import FileStorage

_MOST_ASKED = 1000  # objects; more of one folder are found faster by its list, which has as many per request


@dataclass(frozen=True)
class ObjectEntry:
    """Entry of a folder of objects, with the attributes of ``os.DirEntry`` that readers use."""

    name: str
    path: str
    is_folder: bool

    def is_dir(self) -> bool:
        """Return whether the entry is a folder."""
        return self.is_folder

    def is_file(self) -> bool:
        """Return whether the entry is an object."""
        return not self.is_folder


class Folder:
    """Folder of this machine.

    Attributes:
        root: its path.
        known: facts of the objects in it, by their addresses; empty for files.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.known: dict[str, RemoteObject] = {}

    def scan(self, name: str = "") -> list[Any]:
        """Return the entries of the folder, or of a folder in it.

        Raises:
            OSError: the operating system fails.
        """
        with os.scandir(os.path.join(self.root, name)) as entries:
            return list(entries)


class ObjectFolder(Folder):
    """Objects below an address, which are listed once."""

    def __init__(self, root: str, objects: dict[str, RemoteObject]) -> None:
        super().__init__(root)
        self.known = {one.path: one for one in objects.values()}
        self._entries: dict[str, dict[str, ObjectEntry]] = {"": {}}
        for name, one in objects.items():
            parts = name.split("/")
            if not all(parts):  # an object that represents a folder, or one with empty names of folders
                continue
            for depth in range(len(parts)):
                above, own = "/".join(parts[:depth]), parts[depth]
                is_folder = depth + 1 < len(parts)
                path = join(root, "/".join(parts[: depth + 1])) if is_folder else one.path
                self._entries.setdefault(above, {}).setdefault(own, ObjectEntry(own, path, is_folder))

    def scan(self, name: str = "") -> list[Any]:
        return list(self._entries.get(name, {}).values())


def open_folder(argument: str, root: str) -> Folder:
    """Return a folder of files, or of objects.

    Args:
        argument: name of the argument that has the path, for messages.
        root: the path or address.

    Raises:
        ArgumentError: there is no such folder.
    """
    if is_remote(root):
        objects = objects_below(argument, root)
        if not objects:
            raise ArgumentError(f"expected objects below the address `{argument}`, got none below {root!r}")
        return ObjectFolder(root, objects)
    if not os.path.isdir(root):
        raise ArgumentError(f"expected `{argument}` to be a folder, there is none at '{printable(root)}'")
    return Folder(root)


@functools.cache
def _links() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder for folders of links, which is deleted with the process."""
    return tempfile.TemporaryDirectory(prefix="stoker-folders-")


def copied_folder(argument: str, root: str) -> str:
    """Return the path of a folder with copies of all objects below an address, for libraries that map files.

    Args:
        argument: name of the argument that has the address, for messages.
        root: the address.

    Raises:
        ArgumentError: there is no such folder, or the copies would be larger than the cache.
        OSError: the copies cannot be written.
    """
    folder = open_folder(argument, root)
    paths = list(folder.known)
    copies = local_copies(argument, paths, folder.known)
    into = tempfile.mkdtemp(dir=_links().name)
    above = f"{root.rstrip('/')}/"
    for path, copy in zip(paths, copies, strict=True):
        name = os.path.join(into, unquote(path.removeprefix(above)))
        if os.path.commonpath([into, os.path.normpath(name)]) != into:
            raise ArgumentError(f"expected names inside of the folder {root!r}, got {path!r}")
        os.makedirs(os.path.dirname(name), exist_ok=True)
        os.symlink(copy, name)
    return into


def whole_files(
    names: Sequence[str], root: str = "", known: dict[str, RemoteObject] | None = None
) -> FileStorage | AsyncStorage:
    """Return a storage whose records are whole files, or whole objects.

    Args:
        names: paths or addresses, relative to ``root``.
        root: folder or address that the paths begin in; "" for the current folder.
        known: facts of objects that a list has given, by their addresses.

    Raises:
        ArgumentError: some are files and some objects, or an object cannot be read.
    """
    if not is_remote(root) and not any("://" in name and is_remote(name) for name in names):
        return FileStorage.of(names, root)
    if is_remote(root):
        require_address("file_root", root, may_be_bucket=True)
    for address in filter(is_remote, names):
        require_address("files", address)
    paths = [join(root, name) for name in names]
    if not known and len(set(paths)) > _MOST_ASKED and is_remote(root) and not root.lower().startswith("http"):
        known = {one.path: one for one in objects_below("file_root", root).values()}
    store = open_store(paths, known)
    assert store is not None, "an address is among the paths"
    number = np.arange(len(paths))
    return AsyncStorage(store, paths, number, np.zeros_like(number), sizes_of(store, paths))
