# SPDX-License-Identifier: Apache-2.0
"""``readers.bagz``: records of Bagz files."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..contract.argument import arg
from ..contract.columns import DataSet
from ..contract.errors import ArgumentError, DataError
from ..contract.storage import RecordForm
from ..contract.text import printable
from ..remote.store import RemoteStore, open_store
from ._columns import Bytes
from ._containers import ContainerReader, digest_of, paths_of, storage_of
from ._file_state import state_of
from ._index_files import ContainerIndex
from ._manifest import manifest_of, storages_of

_WORD = 8  # bytes of an offset


class BagzReader(ContainerReader, name="readers.bagz"):
    """Read records of Bagz files. Output: the bytes, uint8 ``(N,)``.

    A file has its records one after the other and then their end offsets. Files with compressed records (``.bagz``) are
    refused: write them without compression (``.bag``).
    """

    positional = ("paths",)
    outputs = 1
    result_neutral = (*ContainerReader.result_neutral, "paths")
    paths = arg(
        "object",
        doc="Bagz file, or a list of files; or a manifest (.manifest), which `stoker index --manifest` writes.",
    )

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        packed = next((p for p in paths_of("paths", args["paths"], may_be_remote=True) if p.endswith(".bagz")), None)
        if packed is not None:
            raise ArgumentError(
                f"expected files with records that are not compressed, got '{printable(packed)}': write .bag files"
            )

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Find the records.

        Raises:
            ArgumentError: there are no records, or a file is damaged.
            OSError: the operating system fails.
        """
        paths = paths_of("paths", args["paths"], may_be_remote=True)
        manifest = manifest_of("paths", paths, "bagz")
        if manifest is not None:
            return DataSet((Bytes("data", storages_of(manifest, [(0,)], RecordForm.STORED)[0]),), manifest.digest)
        store = open_store(paths)
        indexes = [read_ends(path) if store is None else read_ends_of_object(path, store) for path in paths]
        storage = storage_of(paths, indexes, RecordForm.STORED, store)
        if not len(storage):
            raise ArgumentError(f"expected records in {len(paths)} files such as '{printable(paths[0])}', got none")
        return DataSet((Bytes("data", storage),), digest_of(paths, indexes))


def read_ends(path: str) -> ContainerIndex:
    """Return the records of a file. Its last word is the begin of the table of end offsets.

    Raises:
        ArgumentError: there is no such file, or it is not a Bagz file.
        OSError: the operating system fails.
    """

    if not os.path.isfile(path):
        raise ArgumentError(f"expected a file, there is none at '{printable(path)}'")
    with open(path, "rb") as file:

        def read(offset: int, count: int) -> bytes:
            file.seek(offset)
            return file.read(count)

        return replace(_ends(path, file.seek(0, os.SEEK_END), read), state=state_of(file.fileno()))


def read_ends_of_object(path: str, store: RemoteStore) -> ContainerIndex:
    """Return the records of an object of a store, like :func:`read_ends`."""
    try:
        return _ends(path, store.objects[path].size, lambda offset, count: store.read(path, offset, count))
    except DataError as error:
        raise ArgumentError(str(error)) from None


def _ends(path: str, size: int, read: Callable[[int, int], bytes]) -> ContainerIndex:
    """Return the records of a file of ``size`` bytes. ``read(offset, count)`` returns bytes of it."""

    def fault(got: str) -> ArgumentError:
        return ArgumentError(f"expected a Bagz file, got {got} in '{printable(path)}'")

    if size == 0:
        return ContainerIndex(np.empty(0, np.uint64), np.empty(0, np.uint64))
    if size < _WORD:
        raise fault(f"{size} bytes")
    begin = int.from_bytes(read(size - _WORD, _WORD), "little")
    if begin > size - _WORD or (size - begin) % _WORD:
        raise fault("a table of offsets that does not end with the file")
    ends = np.frombuffer(read(begin, size - begin), np.uint64)
    offset = np.concatenate([np.zeros(1, np.uint64), ends[:-1]])
    if len(ends) * _WORD != size - begin or (ends < offset).any() or int(ends[-1]) != begin:
        raise fault("offsets that do not rise to the table")
    return ContainerIndex(offset, ends - offset)
