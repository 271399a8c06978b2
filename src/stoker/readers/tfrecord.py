# SPDX-License-Identifier: Apache-2.0
"""``readers.tfrecord``: features of the records in TFRecord files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..contract.argument import arg
from ..contract.columns import DataSet
from ..contract.errors import ArgumentError
from ..contract.page_cache import refuse_direct_io
from ..contract.storage import RecordForm
from ..contract.text import printable
from ..remote.store import RemoteStore, open_store
from ._containers import (
    ContainerReader,
    check_begin,
    damage_notes,
    digest_of,
    index_paths_of,
    paths_of,
    read_numbers,
    storage_of,
)
from ._example import ExampleColumn, as_features, unpacked_features
from ._index_files import ContainerIndex, index_files
from ._manifest import manifest_of, refuse_index, storages_of

_FRAME = 16  # bytes of a record's length and checksums


class TFRecordReader(ContainerReader, name="readers.tfrecord"):
    """Read features of ``tf.train.Example`` records in TFRecord files. Output: a dict with a node per feature.

    A string is uint8 ``(N,)``: the bytes of an encoded image, for example. Numbers are float32 or int64, with the
    declared shape, or for a ``VarLenFeature`` with shape ``(N, *partial_shape)``.

    No index files are needed: the first pipeline over a file finds its records, in one pass over their lengths, and
    keeps the result in Stoker's cache folder. Records come in the order of the files. The checksums of records are
    compared. A record with a wrong checksum, a feature of another type, and a missing feature without a default value
    are errors of their rows, for which `on_error` holds.
    """

    positional = ("path", "index_path", "features")
    outputs = 1  # for one feature
    result_neutral = (*ContainerReader.result_neutral, "path", "index_path", "check_crc",
                      "use_o_direct")  # fmt: skip
    path = arg(
        "object",
        doc="TFRecord file, or a list of files; or addresses of objects (s3://, gs://, az://, https://); or a "
        "manifest (.manifest), which `stoker index --manifest` writes.",
    )
    index_path = arg(
        "object", None, doc="Index file of each file, with \"offset size\" per line, as DALI's `tfrecord2idx` writes "
        "them. By default the records are found without one.",
    )  # fmt: skip
    features = arg(
        "object", None, doc="Features by name: a dict of `stoker.tfrecord.FixedLenFeature` and `VarLenFeature`.",
    )  # fmt: skip
    check_crc = arg("bool", True, doc="Compare the checksums of the data.")
    use_o_direct = arg("bool", False, doc="Only False: files are read through the page cache.")

    @classmethod
    def bind(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        values = super().bind(given)
        if values.get("features") is not None:
            try:
                values["features"] = as_features(values["features"])
            except ArgumentError as error:
                raise ArgumentError(f"`{cls.name}`: argument `features`: {error}") from None
        return values

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        refuse_direct_io(args)
        if args["features"] is None:
            raise ArgumentError("expected `features`, a dict of FixedLenFeature and VarLenFeature by name, got none")
        index_paths_of("index_path", args["index_path"], paths_of("path", args["path"], may_be_remote=True))

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return len(args["features"] or ()) or self.outputs

    def arrange_outputs(self, args: Mapping[str, Any], outputs: Sequence[Any]) -> dict[str, Any]:
        return dict(zip((f[0] for f in args["features"]), outputs, strict=True))

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Find the records.

        Raises:
            ArgumentError: there are no records, or an index file is wrong.
            OSError: the operating system fails.
        """
        paths = paths_of("path", args["path"], may_be_remote=True)
        form = RecordForm.TFRECORD if args["check_crc"] else RecordForm.TFRECORD_UNCHECKED
        manifest = manifest_of("path", paths, "tfrecord")
        notes: tuple[str, ...] = ()
        if manifest is not None:
            refuse_index("index_path", args["index_path"])
            storage, digest = storages_of(manifest, [(0,)], form)[0], manifest.digest
        else:
            indexes, store = _indexes(paths, args)
            storage, digest = storage_of(paths, indexes, form, store), digest_of(paths, indexes)
            notes = damage_notes(paths, indexes, "Its last sample, which represents the rest of the file, is bad")
        if not len(storage):
            raise ArgumentError(f"expected records in {len(paths)} files such as '{printable(paths[0])}', got none")
        columns = tuple(ExampleColumn(name, f, storage) for name, f in unpacked_features(args["features"]))
        return DataSet(columns, digest, notes=notes)


def _indexes(paths: list[str], args: Mapping[str, Any]) -> tuple[list[ContainerIndex], RemoteStore | None]:
    """Return the indexes of the files, and the store if they are objects."""
    store = open_store(paths)
    given = index_paths_of("index_path", args["index_path"], paths)
    if given is not None:
        return [_read_index(path) for path in given], store
    indexes = index_files("tfrecord", paths, store)
    for path, index in zip(paths, indexes, strict=True):
        check_begin(path, index, "TFRecord")
    return indexes, store


def _read_index(path: str) -> ContainerIndex:
    numbers = read_numbers(path, '"offset size"')
    wrong = np.flatnonzero(numbers[:, 1] < _FRAME)
    if len(wrong):
        raise ArgumentError(
            f"expected sizes of at least {_FRAME} bytes in '{printable(path)}', got {int(numbers[wrong[0], 1])} for "
            f"record {int(wrong[0])}"
        )
    return ContainerIndex(numbers[:, 0].astype(np.uint64), numbers[:, 1].astype(np.uint64))
