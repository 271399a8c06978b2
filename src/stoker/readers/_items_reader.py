# SPDX-License-Identifier: Apache-2.0
"""Base class of readers whose samples worker processes make: tuples, or dicts whose keys the caller chooses."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from typing import Any

from ..contract.argument import arg
from ..contract.errors import ArgumentError
from ..contract.lowering import Lowering
from ..contract.step import Value
from ._items import ItemColumn, ItemStorage, lower_item_columns
from ._named_columns import chosen_columns
from ._sampled import SampledReader

# Subclasses declare these two as `num_outputs` and `columns`, after their source.
NUM_OUTPUTS = arg("int", 1, doc="Number of values of a sample.")
COLUMNS = arg("object", None, doc="Keys of the values, for samples that are dicts; in place of `num_outputs`.")


class ItemsReader(SampledReader, ABC):
    """Reader of samples that are tuples of `num_outputs` values, or dicts with the keys `columns`."""

    outputs = 1

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the data."""
        super().validate(args)
        if args["columns"] is not None:
            if args["num_outputs"] != 1:
                raise ArgumentError("expected one of `num_outputs` and `columns`, got both")
            chosen_columns(args["columns"])
        if args["num_outputs"] < 1:
            raise ArgumentError(f"expected `num_outputs` >= 1, got {args['num_outputs']}")

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return int(args["num_outputs"]) if args["columns"] is None else len(chosen_columns(args["columns"]))

    def arrange_outputs(self, args: Mapping[str, Any], outputs: Sequence[Any]) -> Any:
        if args["columns"] is None:
            return super().arrange_outputs(args, outputs)
        return dict(zip(chosen_columns(args["columns"]), outputs, strict=True))

    def lower(self, c: Lowering) -> tuple[Value, ...]:
        return lower_item_columns(c)


def _keys(args: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the outputs."""
    if args["columns"] is None:
        return tuple(f"output {k}" for k in range(args["num_outputs"]))
    return tuple(chosen_columns(args["columns"]))


def item_columns(source: Any, args: Mapping[str, Any]) -> tuple[ItemColumn, ...]:
    """Return the columns of a data set with ``__getitem__`` and ``__len__``.

    Raises:
        ArgumentError: there are no samples.
    """
    keys = _keys(args)
    storage = ItemStorage(source, args["num_outputs"] if args["columns"] is None else keys)
    if not len(storage):
        raise ArgumentError("expected at least one sample in `source`, got none")
    return tuple(ItemColumn(key, storage, k) for k, key in enumerate(keys))
