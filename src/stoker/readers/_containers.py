# SPDX-License-Identifier: Apache-2.0
"""Base class of readers of container files, with arguments that they share."""

from __future__ import annotations

import os
from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..contract.argument import arg
from ..contract.errors import ArgumentError
from ..contract.reader import Sampler
from ..contract.storage import RecordForm
from ..contract.text import brief, printable
from ..remote.addresses import is_remote, require_address
from ..remote.copies import local_copies
from ..remote.store import RemoteStore
from ._columns import fingerprint
from ._fetching import AsyncStorage
from ._index_files import ContainerIndex
from ._sampled import SampledReader
from ._storages import RangeStorage

_COMPRESSED = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "Zstandard", b"\xfd7zXZ": "xz", b"BZh": "bzip2",
               b"\x78\x01": "zlib", b"\x78\x9c": "zlib", b"\x78\xda": "zlib"}  # fmt: skip


class ContainerReader(SampledReader, ABC):
    """Reader of records in container files."""

    result_neutral: ClassVar[tuple[str, ...]] = (
        *SampledReader.result_neutral, "initial_fill", "prefetch_queue_depth", "read_ahead", "skip_cached_images",
        "dont_use_mmap", "lazy_init", "tensor_init_bytes", "shuffle_after_epoch_seed",
    )  # fmt: skip
    arguments_come_last = True
    initial_fill = arg("int", 1024, doc="No effect: a shuffle is over the whole data set, not over a buffer.")
    prefetch_queue_depth = arg("int", 1, doc="No effect: the pipeline's prefetch_queue_depth holds.")
    read_ahead = arg("bool", False, doc="No effect: rows are prefetched with their batches.")
    skip_cached_images = arg("bool", False, doc="No effect: there is no cache of decoded images.")
    dont_use_mmap = arg("bool", False, doc="No effect: files are always read, never mapped.")
    lazy_init = arg("bool", False, doc="No effect: the index is read when the pipeline is built.")
    tensor_init_bytes = arg("int", 1048576, doc="No effect: memory is planned.")
    shuffle_after_epoch_seed = arg("int", None, doc="No effect: `seed` decides the order of shuffled epochs.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk. In DALI these readers may have both kinds of shuffling."""
        both = args["random_shuffle"] and args["shuffle_after_epoch"] and not args["stick_to_shard"]
        super().validate({**args, "shuffle_after_epoch": False} if both else args)

    @classmethod
    def ordering(cls, args: Mapping[str, Any]) -> Sampler:
        return super().ordering(
            {**args, "shuffle_after_epoch": args["shuffle_after_epoch"] and not args["random_shuffle"]}
        )


def paths_of(name: str, value: Any, *, may_be_remote: bool = False) -> list[str]:
    """Return the paths of an argument: one path, or a list.

    Args:
        name: name of the argument.
        value: its value.
        may_be_remote: accept addresses of objects too (``remote/``).

    Raises:
        ArgumentError: the value is neither, or the list is empty.
    """
    single = isinstance(value, (str, os.PathLike))
    try:
        found = [os.fspath(p) for p in ([value] if single else value)]
    except Exception:  # noqa: BLE001 - a foreign iterable may raise anything
        found = []
    if not found or not all(isinstance(p, str) for p in found):
        raise ArgumentError(f"expected a path or a list of paths as `{name}`, got {brief(value)}")
    for address in (p for p in found if "://" in p):
        if not may_be_remote:
            scheme = address.partition("://")[0]
            raise ArgumentError(
                f"expected paths of files as `{name}`, got {brief(scheme)}://...: this reader has no stores"
            )
        require_address(name, address)
    return found


def is_missing(value: Any) -> bool:
    """Return whether an argument is not given: None, or an empty text or list, as in DALI's scripts."""
    return value is None or (isinstance(value, (str, list, tuple)) and not value)


def index_paths_of(name: str, value: Any, paths: Sequence[str]) -> list[str] | None:
    """Return the paths of index files, one per file; None if the argument is not given.

    Raises:
        ArgumentError: their number is not that of the files, or one does not exist.
    """
    if is_missing(value):
        return None
    found = local_copies(name, paths_of(name, value, may_be_remote=True))
    if len(found) != len(paths):
        raise ArgumentError(f"expected an index in `{name}` for each of {len(paths)} files, got {len(found)}")
    return found


def read_numbers(path: str, columns: str) -> npt.NDArray[np.int64]:
    """Return the numbers of an index file with two whole numbers per line, int64 ``(lines, 2)``.

    Args:
        path: the index file.
        columns: meaning of the columns, for messages.

    Raises:
        ArgumentError: there is no such file, or a line has something else.
    """
    try:
        with open(path, "rb") as file:
            text = file.read()
    except (FileNotFoundError, IsADirectoryError):
        raise ArgumentError(f"expected an index file, there is none at '{printable(path)}'") from None
    try:
        numbers = np.array(text.split(), np.int64).reshape(-1, 2)
        if (numbers >= 0).all() and len(numbers) == sum(1 for line in text.splitlines() if line.strip()):
            return numbers
    except (ValueError, OverflowError):
        pass
    for number, line in enumerate(text.splitlines(), 1):
        parts = line.split()
        if parts and not (len(parts) == 2 and all(_is_number(p) for p in parts)):
            shown = brief(line.decode(errors="replace"))
            raise ArgumentError(f"expected {columns} in line {number} of '{printable(path)}', got {shown}")
    raise ArgumentError(f"expected {columns} in every line of '{printable(path)}', got other text")


def _is_number(text: bytes) -> bool:
    return text.isdigit() and len(text) < 19


def check_begin(path: str, index: ContainerIndex, kind: str) -> None:
    """Raise ArgumentError if a file is damaged from its first byte on: it is of another format, or compressed."""
    if not index.damage or index.damage_offset > 0:
        return
    if is_remote(path):
        raise ArgumentError(f"expected a {kind} file, got another format in '{printable(path)}': {index.damage}")
    with open(path, "rb") as file:
        head = file.read(8)
    form = next((name for magic, name in _COMPRESSED.items() if head.startswith(magic)), None)
    if form is not None:
        raise ArgumentError(
            f"expected a {kind} file, got one that is compressed with {form}, '{printable(path)}': single records of "
            "it cannot be read. Decompress it first"
        )
    raise ArgumentError(f"expected a {kind} file, got another format in '{printable(path)}': {index.damage}")


def damage_notes(paths: Sequence[str], indexes: Sequence[ContainerIndex], outcome: str) -> tuple[str, ...]:
    """Return a remark for each damaged file."""
    return tuple(
        f"'{printable(path)}' is damaged at byte {index.damage_offset}: {index.damage}. {outcome}"
        for path, index in zip(paths, indexes, strict=True)
        if index.damage
    )


def storage_of(
    paths: Sequence[str], indexes: Sequence[ContainerIndex], form: RecordForm, store: RemoteStore | None = None
) -> RangeStorage | AsyncStorage:
    """Return a storage with all records of the files, or of objects of the store."""
    file = np.repeat(np.arange(len(paths), dtype=np.uint32), [len(index) for index in indexes])
    offset = np.concatenate([index.offset for index in indexes])
    length = np.concatenate([index.length for index in indexes])
    return ranges_of(paths, file, offset, length, None, form, store, indexes)


def ranges_of(
    paths: Sequence[str], file: Any, offset: Any, length: Any, absent: Any, form: RecordForm, store: RemoteStore | None,
    indexes: Sequence[ContainerIndex],
) -> RangeStorage | AsyncStorage:  # fmt: skip
    """Return a storage of byte ranges of files, which must be as the indexes found them, or of objects of the store."""
    if store is not None:
        return AsyncStorage(store, paths, file, offset, length, absent, form=form)
    return RangeStorage(paths, file, offset, length, absent, form=form, states=[index.state for index in indexes])


def digest_of(paths: Sequence[str], indexes: Sequence[ContainerIndex], *decides: str) -> str:
    """Return the digest of the records of files: names of the files, and the records' places in them."""
    parts: list[Any] = [*decides]
    for path, index in zip(paths, indexes, strict=True):
        parts += [os.path.basename(path), np.asarray(index.offset), np.asarray(index.length)]
    return fingerprint(*parts)
