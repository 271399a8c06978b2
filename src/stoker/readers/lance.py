# SPDX-License-Identifier: Apache-2.0
"""``readers.lance``: columns of Lance data sets."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.argument import arg
from ..contract.columns import Column, DataSet
from ..contract.errors import ArgumentError, DataError
from ..contract.extras import import_extra
from ..contract.lowering import Lowering
from ..contract.operator import Spec
from ..contract.step import Value
from ..contract.storage import RecordLocation
from ..contract.text import brief, printable, reason_of
from ._arrow import ArrowType, arrow_type, label_type, number_column
from ._columns import fingerprint
from ._items import ItemColumn, lower_item_columns
from ._library_records import LibraryStorage
from ._named_columns import NamedColumnsReader, chosen_columns, require_columns
from ._row_groups import DecodedRows


class LanceReader(NamedColumnsReader, name="readers.lance"):
    """Read columns of a Lance data set. Outputs: a dict with a node per column.

    Bytes and texts are uint8 ``(N,)``. A number is ``(1,)`` of its type, and a list of numbers, such as an embedding,
    ``(N,)``. A missing value has no elements. Numbers are read into memory when the pipeline is built.

    Threads of the pipeline take the rows of the next batches by their numbers, so rows in any order cost the same. The
    rows are those of the version that is open when the pipeline is built: later appends and deletions do not change
    them. A state restores in pipelines over the same version.
    """

    positional = ("source", "columns")
    result_neutral = (*NamedColumnsReader.result_neutral, "source")
    source = arg("object", doc="A lance.LanceDataset, also one in a store or of an older version; or its folder.")
    label = arg("str", None, doc="Column of class labels among `columns`: int32, and samplers balance by it.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        if not isinstance(args["source"], (str, os.PathLike)):
            _require_dataset(args["source"])
        if args["label"] is not None:
            require_columns([args["label"]], chosen_columns(args["columns"]))

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Open the data set, and read the columns of numbers.

        Raises:
            ArgumentError: there are no rows, or a column is missing or of a type that is no array.
            UnsupportedError: the source is a folder, and the package ``lance`` is not installed.
            OSError: the operating system fails.
        """
        source = args["source"]
        if isinstance(source, (str, os.PathLike)):
            source = open_folder(os.fspath(source))
        names, label = chosen_columns(args["columns"]), args["label"]
        require_columns(names, source.schema.names)
        kinds = {name: arrow_type(name, source.schema.field(name).type) for name in names}
        if label is not None:
            kinds[label] = label_type(label, kinds[label])
        count = source.count_rows()
        if not count:
            raise ArgumentError("expected a data set with rows, got an empty one")
        numbers = [name for name in names if not kinds[name].depth]
        columns: dict[str, Column] = {}
        if numbers:
            table = source.to_table(columns=numbers)
            columns |= {n: number_column(n, table.column(n).chunks, kinds[n].dtype, None) for n in numbers}
        storage = _LanceRows(source, {n: k for n, k in kinds.items() if k.depth}, count)
        for k, (name, spec) in enumerate(storage.specs_by_name.items()):
            columns[name] = ItemColumn(name, storage, k, spec, optional=True)
        files = [os.path.basename(f.path) for part in source.get_fragments() for f in part.data_files()]
        digest = fingerprint(repr(sorted(kinds.items())), str(source.version), str(count), *files)
        return DataSet(tuple(columns[name] for name in names), digest, label)

    def lower(self, c: Lowering) -> tuple[Value, ...]:
        return lower_item_columns(c)


def open_folder(path: str) -> Any:
    """Return the newest version of the data set in a folder, a ``lance.LanceDataset``.

    Raises:
        ArgumentError: the folder has no data set.
        UnsupportedError: the package ``lance`` is not installed.
    """
    lance = import_extra("lance", "lance", "Lance data sets", distribution="pylance")
    if not os.path.isdir(path):
        raise ArgumentError(f"expected the folder of a Lance data set, there is none at '{printable(path)}'")
    try:
        return lance.dataset(path)
    except (ValueError, OSError) as error:
        raise ArgumentError(f"expected a Lance data set in '{printable(path)}': {reason_of(error)}") from None


def _require_dataset(source: Any) -> None:
    """Raise ArgumentError if a value is no data set of Lance."""
    lance: Any = sys.modules.get("lance")
    if lance is None or not isinstance(source, lance.LanceDataset):
        raise ArgumentError(f"expected a lance.LanceDataset, or a folder, as `source`, got {brief(source)}")


class _LanceRows(LibraryStorage):
    """Rows of a data set: tuples of the values that are not single numbers.

    Args:
        source: a ``lance.LanceDataset``.
        kinds: types of the columns, by name.
        count: number of rows.
    """

    def __init__(self, source: Any, kinds: Mapping[str, ArrowType], count: int) -> None:
        super().__init__("stoker-lance", "all rows in one Lance data set")
        self._source, self._kinds, self._count = source, dict(kinds), count
        self.specs_by_name = {n: Spec(k.dtype, (None, *k.item)) for n, k in kinds.items()}

    def __len__(self) -> int:
        return self._count

    def specs(self) -> tuple[Spec, ...]:
        """Return the types of a row's values."""
        return tuple(self.specs_by_name.values())

    def locate(self, record: int) -> RecordLocation:
        return RecordLocation(f"{self._source.uri} (row {record})")

    def read(self, records: Sequence[int]) -> Sequence[tuple[npt.NDArray[Any], ...]]:
        try:
            table = self._source.take(list(records), columns=list(self._kinds))
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            where = f"row {records[0]} of '{printable(self._source.uri)}'"
            raise DataError(f"cannot read {where}: {reason_of(error)}") from error
        found = DecodedRows.of(table, self._kinds)
        return [
            tuple(
                np.frombuffer(found.row(name, row), kind.dtype.numpy).reshape(-1, *kind.item)
                for name, kind in self._kinds.items()
            )
            for row in range(len(records))
        ]
