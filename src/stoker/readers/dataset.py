# SPDX-License-Identifier: Apache-2.0
"""``readers.dataset``: samples of a map-style data set, made by worker processes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contract.argument import arg
from ..contract.columns import DataSet
from ..contract.errors import ArgumentError
from ..contract.text import brief, reason_of
from ._columns import fingerprint
from ._items_reader import COLUMNS, NUM_OUTPUTS, ItemsReader, item_columns


class DatasetReader(ItemsReader, name="readers.dataset"):
    """Take samples from a map-style data set, such as a ``torch.utils.data.Dataset``, in worker processes.

    The pipeline's worker processes (``py_num_workers``, ``py_start_method``) call ``source[index]`` for the rows of the
    next batches, and the values return in shared memory. The order of samples, shards and states are those of all
    readers, for any number of processes: give `sampler` in place of a DataLoader's one.

    A sample is a tuple of `num_outputs` values, or a dict with the keys `columns`. In the latter case the outputs are
    a dict. A value is an array, a tensor, a Pillow image, a number, a text (UTF-8) or bytes. The values of the first
    batch decide the types. A sample that raises an exception is a bad sample, for which `on_error` holds. So is one
    whose process dies; another process replaces that one.

    Random numbers that the data set draws itself are its own: each process seeds the generators of Python, NumPy and
    torch differently, and a state does not restore them. Draw with Stoker's operators to have the same numbers again.
    """

    positional = ("source", "num_outputs")
    result_neutral = (*ItemsReader.result_neutral, "source")
    source = arg("object", doc="Object with `__getitem__` for whole numbers and `__len__`.")
    num_outputs = NUM_OUTPUTS
    columns = COLUMNS

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the data."""
        super().validate(args)
        source = args["source"]
        if not hasattr(source, "__getitem__") or not hasattr(source, "__len__"):
            raise ArgumentError(
                f"expected a data set with `__getitem__` and `__len__` as `source`, got {brief(source)}: for an "
                "iterable, use `external_source` with `parallel=True`"
            )

    @classmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Ask for the number of samples.

        Raises:
            ArgumentError: there are no samples.
        """
        source = args["source"]
        try:
            columns = item_columns(source, args)
        except ArgumentError:
            raise
        except Exception as error:  # a data set may raise anything
            raise ArgumentError(
                f"expected the number of samples from `len(source)`, got {type(error).__name__}: {reason_of(error)}"
            ) from error
        keys = repr(tuple(column.name for column in columns))
        return DataSet(columns, fingerprint(type(source).__qualname__, str(len(columns[0])), keys))
