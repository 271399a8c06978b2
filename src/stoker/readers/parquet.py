# SPDX-License-Identifier: Apache-2.0
"""``readers.parquet``: columns of Parquet files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..contract.argument import arg
from ..contract.columns import Column, DataSet
from ..contract.errors import ArgumentError, DataError
from ..contract.text import printable
from ..remote.store import open_store
from ._arrow import ArrowType, arrow_type, label_type, number_column
from ._columns import Bytes, fingerprint
from ._containers import paths_of
from ._named_columns import NamedColumnsReader, chosen_columns, require_columns
from ._row_groups import ParquetFile, RowGroups, RowGroupStorage, column_of_files, open_parquet, sizes_of


class ParquetReader(NamedColumnsReader, name="readers.parquet"):
    """Read columns of Parquet files. Outputs: a dict with a node per column.

    Bytes and texts are uint8 ``(N,)``; so are images in the form of Hugging Face, a struct of bytes and a path. A
    number is ``(1,)`` of its type, and a list of numbers ``(N,)``. A missing value has no elements.

    Parquet compresses rows in groups, so one row costs the decoding of its group. Threads decode groups before their
    rows are needed, and keep them in memory up to `cache_bytes`. Shuffle with `samplers.Windowed`, which takes the
    rows of a window from few groups: ``sampler=samplers.Windowed(block=1000, window=16)`` for groups of 1000 rows. A
    shuffle of the whole data set suits data whose groups fit into `cache_bytes`. Numbers are read into memory when the
    pipeline is built.
    """

    positional = ("paths", "columns")
    result_neutral = (*NamedColumnsReader.result_neutral, "paths", "cache_bytes")
    paths = arg("object", doc="Parquet file or its address, or a list of files with the same columns.")
    label = arg("str", None, doc="Column of class labels among `columns`: int32, and samplers balance by it.")
    cache_bytes = arg("int", 1 << 30, doc="Memory for decoded row groups, in bytes.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        paths_of("paths", args["paths"], may_be_remote=True)
        if args["label"] is not None:
            require_columns([args["label"]], chosen_columns(args["columns"]))
        if args["cache_bytes"] < 0:
            raise ArgumentError(f"expected `cache_bytes` >= 0, got {args['cache_bytes']}")

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Read the footers of the files, and the columns of numbers.

        Raises:
            ArgumentError: there are no rows, a file is no Parquet file, or a column is missing or of another type.
            UnsupportedError: pyarrow is not installed.
            OSError: the operating system fails.
        """
        paths = paths_of("paths", args["paths"], may_be_remote=True)
        store = open_store(paths)
        files = [open_parquet(path, store) for path in paths]
        names = chosen_columns(args["columns"])
        kinds = _types(files, names, args["label"])
        groups = RowGroups(files, {n: k for n, k in kinds.items() if k.depth}, args["cache_bytes"])
        if not len(groups):
            raise ArgumentError(f"expected rows in {len(files)} files such as '{printable(files[0].path)}', got none")
        columns = tuple(_column(name, kinds[name], files, groups) for name in names)
        sizes = sizes_of(files)
        digest = fingerprint(repr(sorted(kinds.items())), sizes, *(os.path.basename(f.path) for f in files))
        block = groups.rows_per_group
        note = (
            f"a shuffle of single rows decodes a row group of up to {block} rows for almost every row. "
            f"`sampler=samplers.Windowed(block={block}, window=16)` decodes each group once"
        )
        is_slow = args["random_shuffle"] and int(sizes[:, 1].sum()) > args["cache_bytes"]
        return DataSet(columns, digest, args["label"], (note,) if is_slow else ())


def _types(files: list[ParquetFile], names: list[str], label: str | None) -> dict[str, ArrowType]:
    """Return the types of columns, which all files must have."""
    found: dict[str, ArrowType] = {}
    for file in files:
        require_columns(names, file.schema.names)
        for name in names:
            kind = arrow_type(name, file.schema.field(name).type)
            if found.setdefault(name, kind) != kind:
                raise ArgumentError(
                    f"expected the column {name!r} of one type in all files, got another in '{printable(file.path)}'"
                )
    if label is not None:
        found[label] = label_type(label, found[label])
    return found


def _column(name: str, kind: ArrowType, files: list[ParquetFile], groups: RowGroups) -> Column:
    if kind.depth:
        return Bytes(name, RowGroupStorage(groups, name), kind.dtype, kind.item, optional=True)
    try:
        column = number_column(name, column_of_files(files, name), kind.dtype, None)
    except DataError as error:
        raise ArgumentError(str(error)) from error
    if np.shape(column.values)[0] != len(groups):
        raise ArgumentError(f"expected {len(groups)} rows of {name!r}, as the files' footers say, got others")
    return column
