# SPDX-License-Identifier: Apache-2.0
"""``readers.huggingface``: columns of a Hugging Face data set, from its files."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..contract.argument import arg
from ..contract.columns import Column, DataSet
from ..contract.errors import ArgumentError
from ..contract.extras import import_extra
from ..contract.text import brief
from ..contract.types import DType
from ..remote.addresses import is_remote
from ._arrow import ArrowType, MappedFiles, arrow_column, arrow_type
from ._columns import fingerprint
from ._folders import copied_folder
from ._named_columns import NamedColumnsReader, chosen_columns, require_columns


class HuggingFaceReader(NamedColumnsReader, name="readers.huggingface"):
    """Read columns of a Hugging Face ``datasets.Dataset``. Outputs: a dict with a node per column.

    Bytes and texts are uint8 ``(N,)``. Images and audio files are their encoded bytes, uint8 ``(N,)``, whether the
    data set holds them or their paths: decode them with ``decoders.image`` or ``decoders.audio``. A number is ``(1,)``
    of its type. A class label is int32 ``(1,)``, and samplers balance by the first column of labels. Lists of numbers
    are ``(N,)``, and ``Array2D`` to ``Array5D`` have their axes. A missing value has no elements.

    The data set keeps its rows in Arrow files. This reader reads a row as a byte range of its file, without the
    library, in every order at the same speed. ``shuffle``, ``select``, ``sort``, ``filter`` and
    ``concatenate_datasets`` hold. Numbers are read into memory when the pipeline is built.
    """

    positional = ("source", "columns")
    result_neutral = (*NamedColumnsReader.result_neutral, "source")
    source = arg(
        "object", doc="The data set, or the folder that its `save_to_disk` has written. A folder of a store is copied."
    )

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        if not isinstance(args["source"], (str, os.PathLike)):
            _require_dataset(args["source"])

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Find the rows.

        Raises:
            ArgumentError: there are no rows, or a column is missing or of a type that is no array.
            UnsupportedError: the source is a folder, and the package ``datasets`` is not installed.
            OSError: the operating system fails.
        """
        source = args["source"]
        if isinstance(source, (str, os.PathLike)):
            source = _load(os.fspath(source))
        table, rows = source.data.table, source._indices
        names = chosen_columns(args["columns"])
        require_columns(names, table.column_names)
        order = None if rows is None else np.asarray(rows.column(0).to_numpy(), np.int64)
        mapped, labels = MappedFiles.of_process(), _class_labels(source)
        columns: list[Column] = []
        facts: list[Any] = []
        for name in names:
            kind = ArrowType(DType.INT32, 0) if name in labels else arrow_type(name, table.schema.field(name).type)
            column, decides = arrow_column(name, table.column(name).chunks, kind, order, mapped)
            columns.append(column)
            facts += [name, str(column.dtype), decides]
        if not len(columns[0]):
            raise ArgumentError("expected a data set with rows, got an empty one")
        label = next((c.name for c in columns if c.name in labels and not c.optional), None)
        return DataSet(tuple(columns), fingerprint(*facts), label)


def _load(folder: str) -> Any:
    datasets = import_extra("datasets", "huggingface", "data sets of Hugging Face")
    if is_remote(folder):
        folder = copied_folder("source", folder)
    try:
        found = datasets.load_from_disk(folder)
    except FileNotFoundError as error:
        raise ArgumentError(f"expected a folder that `save_to_disk` has written: {error}") from None
    _require_dataset(found)
    return found


def _require_dataset(source: Any) -> None:
    """Raise ArgumentError if a value is no data set with random access."""
    datasets: Any = sys.modules.get("datasets")
    if datasets is not None and isinstance(source, datasets.Dataset):
        if source.format["type"] == "custom":
            raise ArgumentError(
                "expected a data set without `set_transform`, got one with a function that makes its rows: use "
                "`readers.dataset`, which calls it, or operators of Stoker in its place"
            )
        return
    hint = ""
    if datasets is not None and isinstance(source, (datasets.DatasetDict, datasets.IterableDatasetDict)):
        hint = f": choose a split, such as source[{next(iter(source), 'train')!r}]"
    elif datasets is not None and isinstance(source, datasets.IterableDataset):
        hint = ", which has no random access: load it without `streaming=True`"
    raise ArgumentError(f"expected a datasets.Dataset, or a folder, as `source`, got {brief(source)}{hint}")


def _class_labels(source: Any) -> set[str]:
    """Return the names of the columns of class labels."""
    return {name for name, feature in source.features.items() if type(feature).__name__ == "ClassLabel"}
