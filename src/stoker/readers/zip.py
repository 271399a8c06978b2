# SPDX-License-Identifier: Apache-2.0
"""``readers.zip``: files in zip archives, with integer labels."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._image_formats import EXTENSIONS
from ..contract.argument import arg
from ..contract.columns import Column, DataSet
from ..contract.errors import ArgumentError
from ..contract.storage import RecordForm
from ..contract.text import brief, printable
from ..remote.store import RemoteStore, open_store
from ._columns import Bytes, Values
from ._containers import ContainerReader, digest_of, paths_of, ranges_of
from ._index_files import ContainerIndex, index_files


class ZipReader(ContainerReader, name="readers.zip"):
    """Read files in zip archives. Outputs: the bytes, uint8 ``(N,)``, and the label, int32 ``(1,)``.

    The archives form one tree of folders. The label is the number of a file's folder among the folders with files, in
    lexicographic order of their paths; files come in lexicographic order of their paths, as those of ``readers.file``.
    Archives must store their files without compression (``zip -0``), because parts of compressed ones cannot be read.
    Archives of more than 4 GiB (Zip64) are read too.
    """

    positional = ("paths",)
    outputs = 2
    result_neutral = (*ContainerReader.result_neutral, "paths", "extensions")
    paths = arg("object", doc="Zip archive, or a list of archives.")
    extensions = arg(
        "object", None, doc='Extensions of the files to take, with their dot ("" for none), such as [".jpg", ".png"]. '
        "By default those of images: " + ", ".join(EXTENSIONS) + ".",
    )  # fmt: skip

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        paths_of("paths", args["paths"], may_be_remote=True)
        _extensions(args["extensions"])

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Find the files.

        Raises:
            ArgumentError: there are no files, or an archive is damaged or compressed.
            OSError: the operating system fails.
        """
        paths, wanted = paths_of("paths", args["paths"], may_be_remote=True), _extensions(args["extensions"])
        store = open_store(paths)
        indexes = index_files("zip", paths, store)
        for path, index in zip(paths, indexes, strict=True):
            if index.damage:
                raise ArgumentError(
                    f"expected a zip archive with files that are not compressed, got '{printable(path)}': "
                    f"{index.damage}. `zip -0` stores files as they are"
                )
        found = _members(indexes, wanted)
        if not found:
            raise ArgumentError(
                f"expected files in {len(paths)} archives such as '{printable(paths[0])}', got none with the "
                f"extensions {', '.join(map(repr, wanted))}"
            )
        columns, decides = _columns(paths, indexes, found, store)
        return DataSet(columns, digest_of(paths, indexes, *decides), "label")


def _extensions(value: Any) -> tuple[str, ...]:
    """Return the extensions of the files to take, in lower case."""
    if value is None:
        return tuple(EXTENSIONS)
    if not isinstance(value, (list, tuple)) or not all(isinstance(x, str) and x[:1] in ("", ".") for x in value):
        raise ArgumentError(
            f'expected `extensions` to be a list of extensions with their dot, such as [".jpg", ".png"], got '
            f"{brief(value)}"
        )
    return tuple(x.lower() for x in value)


def _members(indexes: Sequence[ContainerIndex], wanted: tuple[str, ...]) -> list[tuple[bytes, int, int]]:
    """Return name, archive and number of the files to take, in the order of the data set."""
    coded = {extension.encode() for extension in wanted}
    found = []
    for archive, index in enumerate(indexes):
        for number, name in enumerate(index.names.split(b"\0")[:-1]):
            base = name.rpartition(b"/")[2]
            stem, dot, extension = base.rpartition(b".")
            if (dot + extension.lower() if stem and dot else b"") in coded:
                found.append((name, archive, number))
    found.sort(key=lambda member: (member[0].rpartition(b"/")[0], member[0]))
    for (first, *_), (second, *_) in itertools.pairwise(found):
        if first == second:
            raise ArgumentError(
                f"expected files of different names, got {printable(first.decode(errors='replace'))!r} twice"
            )
    return found


def _columns(
    paths: Sequence[str],
    indexes: Sequence[ContainerIndex],
    found: list[tuple[bytes, int, int]],
    store: RemoteStore | None,
) -> tuple[tuple[Column, ...], tuple[str, Any]]:
    """Return the columns, and the facts that decide about them."""
    archive = np.asarray([a for _, a, _ in found], np.uint32)
    begin = np.cumsum([0, *(len(i) for i in indexes)])
    at = begin[archive] + np.asarray([n for *_, n in found], np.int64)
    offset = np.concatenate([np.asarray(i.offset) for i in indexes])[at]
    length = np.concatenate([np.asarray(i.length) for i in indexes])[at]
    folders = [name.rpartition(b"/")[0] for name, *_ in found]
    number = {folder: label for label, folder in enumerate(sorted(set(folders)))}
    labels = np.asarray([number[f] for f in folders], np.int32)
    storage = ranges_of(paths, archive, offset, length, None, RecordForm.STORED, store, indexes)
    names = "\0".join(name.decode("utf-8", "surrogateescape") for name, *_ in found)
    return (Bytes("data", storage), Values("label", labels[:, None])), (names, at)
