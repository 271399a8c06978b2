# SPDX-License-Identifier: Apache-2.0
"""Lists of files with labels, from folders, list files or the caller, in compact memory."""

from __future__ import annotations

import contextlib
import fnmatch
import hashlib
import os
import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._image_formats import has_image_extension, starts_like_image
from ..contract.columns import DataSet
from ..contract.errors import ArgumentError
from ..contract.file_path import as_path
from ..contract.text import brief
from ..remote.addresses import folder_of, is_remote
from ..remote.block_cache import RemoteObject
from ..remote.copies import local_copy
from ._columns import Bytes, Values
from ._fetching import AsyncStorage
from ._folders import Folder, open_folder, whole_files
from ._storages import FileStorage, packed_file_table

Ints32 = npt.NDArray[np.int32]


class Listing:
    """Names and labels in compact form. A million files would be 100 MB of Python strings."""

    def __init__(self, root: str) -> None:
        self.root = os.path.join(os.fsencode(root), b"") if root else b""
        self.is_remote = is_remote(root)
        self.known: dict[str, RemoteObject] = {}  # facts of objects, by their addresses
        self._names = bytearray()
        self._labels: list[Ints32] = []
        self._count = 0
        self.left_out_count = 0
        self._first_left_out = ""

    def add(self, names: Sequence[str], labels: Ints32) -> None:
        """Add files, relative to the folder, and their labels."""
        if names:
            packed = "\0".join(names)
            self.is_remote = self.is_remote or ("://" in packed and any(map(is_remote, names)))
            self._names += os.fsencode(packed) + b"\0"
            self._labels.append(labels)
            self._count += len(names)

    def leave_out(self, name: str) -> None:
        """Count a file that is no image."""
        self._first_left_out = self._first_left_out or name
        self.left_out_count += 1

    @property
    def labels(self) -> Ints32:
        """Return the labels of all files."""
        if len(self._labels) > 1:
            self._labels = [np.concatenate(self._labels)]
        return self._labels[0]

    def finish(self) -> DataSet:
        """Return the data set of bytes and labels. Its digest covers names and labels but not the folder."""
        digest = hashlib.blake2b(self._names, digest_size=8)
        digest.update(self.labels.tobytes())
        columns = Bytes("data", self._storage()), Values("label", self.labels[:, None])
        return DataSet(columns, digest.hexdigest(), "label", (self.note,) if self.note else ())

    def _storage(self) -> FileStorage | AsyncStorage:
        if not self.is_remote:
            return FileStorage(packed_file_table(self.root, self._names, self._count))
        names = os.fsdecode(bytes(self._names)).split("\0")[:-1]
        return whole_files(names, os.fsdecode(self.root), self.known)

    @property
    def note(self) -> str:
        """Return a remark about files that are no images; "" if there are none."""
        if not self.left_out_count:
            return ""
        files = "1 file is" if self.left_out_count == 1 else f"{self.left_out_count} files are"
        return (
            f"{files} left out, such as {self._first_left_out!r}: neither name nor content is that of an image. "
            "`extensions` or `file_filters` say which files to take"
        )

    def __len__(self) -> int:
        return self._count


def list_files(args: Mapping[str, Any], *, argument: str = "files") -> Listing:
    """List the files that a reader's arguments name.

    Args:
        args: the reader's arguments.
        argument: the name that ``files`` has in the reader, for messages.

    Raises:
        ArgumentError: there are no files.
        OSError: the operating system fails.
    """
    given = [k for k in ("files", "file_list") if args[k] is not None]
    if len(given) > 1:
        raise ArgumentError("expected one of `files` and `file_list`, got both")
    if args["labels"] is not None and args["files"] is None:
        raise ArgumentError("`labels` go with `files`, which are not given")
    listing = Listing(_base(args))
    if args["files"] is not None:
        _take_given(listing, args["files"], args["labels"])
    elif args["file_list"] is not None:
        _take_list(listing, args["file_list"])
    elif args["file_root"] is not None:
        folder = open_folder("file_root", args["file_root"])
        listing.known = folder.known
        _walk(listing, folder, args)
    else:
        raise ArgumentError("expected `file_root`, `file_list` or `files`, got none of them")
    if not len(listing):
        note = f"; {listing.note}" if listing.note else ""
        raise ArgumentError(
            f"no file was found{_where(args)}{note}. Are the files in class sub-folders? Else give `{argument}`"
        )
    return listing


def _base(args: Mapping[str, Any]) -> str:
    """Return the folder that relative paths refer to; "" for the current one."""
    root: str | None = args["file_root"]
    return folder_of(args["file_list"]) if root is None and args["file_list"] is not None else root or ""


def list_file(path: str) -> str:
    """Return the path of a file of paths, the argument `file_list`: a copy of it if it is an object.

    Raises:
        ArgumentError: there is no such file.
    """
    if not is_remote(path) and not os.path.isfile(path):
        raise ArgumentError(f"expected `file_list` to be a file of paths, there is none at {path!r}")
    return local_copy("file_list", path)


def _where(args: Mapping[str, Any]) -> str:
    if not args["file_root"]:
        return ""
    kinds = f" with one of the extensions {', '.join(args['extensions'])}" if args["extensions"] else ""
    return f" in {args['file_root']!r}{kinds}"


def _below(listing: Listing, names: list[str]) -> list[str]:
    """Return ``names`` relative to the listing's folder. If a name is elsewhere, all names include their folder."""
    if not listing.root or not any(map(os.path.isabs, names)):
        return names
    root = os.fsdecode(listing.root)
    if any(os.path.isabs(n) and not n.startswith(root) for n in names):
        listing.root = b""
        return [os.path.join(root, n) for n in names]
    return [n.removeprefix(root) for n in names]


def labels_of(labels: Any, count: int) -> Ints32:
    """Return the labels of ``count`` given files: their numbers if there are none.

    Raises:
        ArgumentError: the labels are no whole numbers, or not one per file.
    """
    return np.arange(count, dtype=np.int32) if labels is None else _as_labels(labels, count)


def _take_given(listing: Listing, files: Any, labels: Any) -> None:
    names = _paths(files)
    listing.add(_below(listing, names), labels_of(labels, len(names)))


def _paths(files: Any) -> list[str]:
    """Return one path, or the paths of a list, as strings."""
    single = files if type(files) is str else as_path(files)
    if isinstance(single, str):
        return [single]
    if single is None:
        with contextlib.suppress(Exception):  # a foreign iterable may raise anything
            names: list[str] = []
            for file in files:
                name = file if type(file) is str else as_path(file)
                if not isinstance(name, str):
                    break  # a view of an array may have 2**61 rows
                names.append(name)
            else:
                return names
    raise ArgumentError(f"expected a list of paths as `files`, got {brief(files)}")


def _as_labels(labels: Any, count: int) -> Ints32:
    try:
        numbers = np.asarray(
            [labels] if type(labels) is int else labels if hasattr(labels, "__len__") else list(labels)
        )
    except Exception:  # noqa: BLE001 - a foreign `__array__` may raise anything, and NumPy refuses ragged lists
        raise ArgumentError(f"expected one whole number per file as `labels`, got {brief(labels)}") from None
    if numbers.shape != (count,):
        raise ArgumentError(f"expected one label per file, got {numbers.size} labels for {count} files")
    with np.errstate(invalid="ignore"):  # a cast of NaN, or of a float that int64 does not hold; the result differs
        whole = numbers.astype(np.int64) if numbers.dtype.kind in "iufb" else None
    if whole is None or (whole != numbers).any() or (whole != whole.astype(np.int32)).any():
        raise ArgumentError("expected `labels` to be whole numbers of at most 32 bits")
    return whole.astype(np.int32)


def _take_list(listing: Listing, path: str) -> None:
    names: list[str] = []
    labels = array("q")
    with open(list_file(path), encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, 1):
            words = line.rsplit(None, 1)
            if not words:
                continue
            try:
                name, label = words
                labels.append(int(label))
            except (ValueError, OverflowError):
                raise ArgumentError(
                    f'expected "path label" in line {number} of {path!r}, got {line.strip()!r}'
                ) from None
            names.append(name.strip())
    listing.add(_below(listing, names), _as_labels(labels, len(names)))


def _walk(listing: Listing, folder: Folder, args: Mapping[str, Any]) -> None:
    fold = (lambda s: s) if args["case_sensitive_filter"] else str.lower
    wanted = _wanted(args, fold)
    folders = _matcher([fold(p) for p in _patterns("dir_filters", args["dir_filters"], ("*",))])
    classes = sorted(e.name for e in folder.scan() if e.is_dir() and folders(fold(e.name)))
    for label, name in enumerate(classes):
        entries = folder.scan(name)
        files = sorted(_take(listing, name, entries) if wanted is None else _select(wanted, entries))
        listing.add([f"{name}{os.sep}{f}" for f in files], np.full(len(files), label, np.int32))


def _wanted(args: Mapping[str, Any], fold: Callable[[str], str]) -> Callable[[str], Any] | None:
    """Return a function that says whether to take a name; None if the name alone does not decide."""
    if args["extensions"] is not None:
        # A name without an extension has the extension "".
        listed = {fold(extension) for extension in args["extensions"]}
        return lambda name: os.path.splitext(fold(name))[1] in listed
    if args["file_filters"] is None:
        return None
    matches = _matcher([fold(p) for p in _patterns("file_filters", args["file_filters"], ())])
    return lambda name: matches(fold(name))


def _select(wanted: Callable[[str], Any], entries: Iterable[Any]) -> list[str]:
    return [entry.name for entry in entries if wanted(entry.name) and not entry.is_dir()]


def _take(listing: Listing, folder: str, entries: Iterable[Any]) -> list[str]:
    """Return the names of images: of a usual extension, or of a content that begins like an image."""
    names = []
    for entry in entries:
        if entry.is_dir():
            continue
        if has_image_extension(entry.name):
            names.append(entry.name)
        elif not entry.name.startswith("."):
            # The content of objects is not looked at: each would be a request.
            if entry.is_file() and not is_remote(entry.path) and starts_like_image(entry.path):
                names.append(entry.name)
            else:
                listing.leave_out(os.path.join(folder, entry.name))
    return names


def _patterns(name: str, given: Any, default: Sequence[str]) -> Sequence[str]:
    patterns = default if given is None else [given] if isinstance(given, str) else given
    listed = isinstance(patterns, (list, tuple, set, frozenset)) and all(isinstance(p, str) for p in patterns)
    if listed and (given is None or patterns):
        return list(patterns)
    raise ArgumentError(f"expected a pattern or a list of patterns as `{name}`, got {brief(given)}")


def _matcher(patterns: Sequence[str]) -> Callable[[str], Any]:
    return re.compile("|".join(map(fnmatch.translate, patterns))).match
