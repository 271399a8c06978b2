# SPDX-License-Identifier: Apache-2.0
"""Readers that join several readers: one data set, and an order that concatenates or mixes the parts' orders."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..contract.argument import ON_ERROR, arg
from ..contract.columns import Column, DataSet
from ..contract.errors import ArgumentError
from ..contract.lowering import Lowering
from ..contract.reader import BoundSampler, Ints, OpenSource, Reader, Shards, Source, SourcePart, lower_columns
from ..contract.step import Value
from ..contract.text import brief
from ..contract.whole_number import as_whole_number
from ..native import _native
from ._columns import Values
from ._sharding import NAMES, NUM_SHARDS, PAD_LAST_BATCH, SHARD_ID, SHARDING, STICK_TO_SHARD, check_shards
from .order import Keys, PermutedOrder, QuotaOrder, RepeatingOrder


class PartOrders:
    """Orders of the parts, in indices of the joined data set."""

    def __init__(self, orders: Sequence[BoundSampler], counts: Sequence[int]) -> None:
        self.orders = orders
        self._starts = np.cumsum(counts) - counts
        self.sizes = np.asarray([order.size for order in orders], np.int64)

    def indices(self, seed: int, part: int, epoch: int, positions: Ints) -> Ints:
        """Return joined indices for positions of one part's epoch. Each part has its own seed."""
        own = _native.epoch_key(seed, part)
        found: Ints = self._starts[part] + self.orders[part].indices(own, epoch, positions)
        return found

    @property
    def forward_only(self) -> str | None:
        """Return the reason why an order has no random access; None if all have it."""
        return next((o.forward_only for o in self.orders if o.forward_only), None)


@dataclass(frozen=True, eq=False)
class ConcatenatedOrder:
    """Parts one after the other. ``outer`` is the order of their concatenated positions."""

    outer: BoundSampler
    parts: PartOrders
    seed: int | None = None

    @property
    def size(self) -> int | None:
        return self.outer.size

    @property
    def forward_only(self) -> str | None:
        return self.outer.forward_only or self.parts.forward_only

    def indices(self, seed: int, epoch: int, positions: Ints) -> Ints:
        seed = seed if self.seed is None else self.seed
        places = self.outer.indices(seed, epoch, positions)
        ends = np.cumsum(self.parts.sizes)
        part = np.searchsorted(ends, places, side="right")
        found = np.empty_like(places)
        for k in np.unique(part):
            mine = part == k
            inside = places[mine] - (ends[k] - self.parts.sizes[k])
            found[mine] = self.parts.indices(seed, int(k), epoch, inside)
        return found

    def keys(self, epoch: int, positions: Ints, indices: Ints) -> Keys:
        once = all(isinstance(order, PermutedOrder) for order in (self.outer, *self.parts.orders))
        return (indices if once else positions).astype(np.uint64)


@dataclass(frozen=True, eq=False)
class MixedOrder(RepeatingOrder):
    """Parts in fixed proportions, each in its own order."""

    order: QuotaOrder
    parts: PartOrders

    @property
    def size(self) -> int:
        return self.order.size

    @property
    def forward_only(self) -> str | None:  # type: ignore[override]
        return self.parts.forward_only

    def indices(self, seed: int, epoch: int, positions: Ints) -> Ints:
        seed = seed if self.order.seed is None else self.order.seed
        part, round_, inside = self.order.parts(seed, epoch, positions)
        found = np.empty_like(positions)
        for k in np.unique(part):
            for r in np.unique(round_[part == k]):
                mine = (part == k) & (round_ == r)
                found[mine] = self.parts.indices(seed, int(k), int(r), inside[mine])
        return found


class CombinedReader(Source, ABC):
    """Base class of readers that combine several readers. A subclass defines the order."""

    devices = ("cpu",)
    positional = ("parts",)
    source_list_arguments = ("parts",)
    outputs = 3  # for parts with bytes and a label; in general the parts' number and one more
    result_neutral: ClassVar[tuple[str, ...]] = (*NAMES, "on_error")
    parts = arg("object", doc="Outputs of the readers to join, in a list; at least one.")
    label_offsets = arg(
        "object", None, doc='Offsets for the labels of each part: a list of numbers, or "disjoint" for labels '
        "that begin after those of the previous part; by default none.",
    )  # fmt: skip
    seed = arg("int", None, doc="Seed of the orders; by default the pipeline's. A part's own `seed` stays.")
    num_shards = NUM_SHARDS
    shard_id = SHARD_ID
    sharding = SHARDING
    stick_to_shard = STICK_TO_SHARD
    pad_last_batch = PAD_LAST_BATCH
    on_error = ON_ERROR

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        check_shards(args)
        if not args["parts"]:
            raise ArgumentError("expected at least one reader in `parts`, got none")
        for number, part in enumerate(args["parts"]):
            _check_part(number, part)
        offsets = args["label_offsets"]
        if offsets is not None and offsets != "disjoint":
            numbers = isinstance(offsets, (list, tuple)) and all(as_whole_number(x) is not None for x in offsets)
            if not numbers or len(offsets) != len(args["parts"]):
                raise ArgumentError(
                    f'expected `label_offsets` to be "disjoint" or a whole number for each of {len(args["parts"])} '
                    f"parts, got {brief(offsets)}"
                )

    @classmethod
    @abstractmethod
    def shards(cls, args: Mapping[str, Any]) -> Shards:
        """Return the division of epochs into shards."""

    @classmethod
    @abstractmethod
    def join(
        cls, args: Mapping[str, Any], parts: PartOrders, total: tuple[int, Any], shards: Shards
    ) -> tuple[BoundSampler, str]:
        """Return the combined order and its name. ``total`` holds the number of all samples and their labels."""

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        first: SourcePart | None = args["parts"][0] if args["parts"] else None
        return self.outputs if first is None else int(first.operator().count_outputs(first.args)) + 1

    @classmethod
    def open(cls, args: Mapping[str, Any]) -> OpenSource:
        """Open the data sets of all parts.

        Raises:
            ArgumentError: a part has no samples or a wrong argument.
            OSError: the operating system fails.
        """
        orders, names, data = [], [], []
        for number, part in enumerate(args["parts"]):
            try:
                own, sampler = part.operator.dataset(part.args), part.operator.ordering(part.args)
                order = sampler.bind(len(own), own.labels, Shards(), part.operator.order_seed(part.args))
            except ArgumentError as error:
                raise ArgumentError(f"part {number}: {error}") from error
            if order.size is None:
                raise ArgumentError(f"part {number}: expected a `sampler` with a length, got an endless one")
            orders.append(order)
            names.append(repr(sampler))
            data.append(own)
        joined = _join(data, _offsets(args["label_offsets"], data))
        notes = tuple(f"part {number}: {note}" for number, own in enumerate(data) for note in own.notes)
        shards = cls.shards(args)
        counts = [len(own) for own in data]
        order, name = cls.join(args, PartOrders(orders, counts), (len(joined), joined.labels), shards)
        return OpenSource(order, joined.columns, joined.fingerprint, shards, f"{name} of {', '.join(names)}", notes)

    def lower(self, c: Lowering) -> tuple[Value, ...]:
        return lower_columns(c)


def _offsets(given: Any, data: Sequence[DataSet]) -> list[int]:
    """Return the number to add to the labels of each part."""
    if given is None:
        return [0] * len(data)
    ends = []
    for number, own in enumerate(data):
        if own.labels is None:
            raise ArgumentError(f"expected labels in every part for `label_offsets`, got none in part {number}")
        ends.append(int(own.labels.max()) + 1)
    return [sum(ends[:number]) for number in range(len(data))] if given == "disjoint" else [int(x) for x in given]


def _join(data: Sequence[DataSet], offsets: Sequence[int]) -> DataSet:
    """Join data sets into one, with the number of the part as its last column."""
    if len({tuple(c.name for c in own.columns) for own in data}) > 1:
        names = [[c.name for c in own.columns] for own in data]
        raise ArgumentError(f"expected parts with the same columns, got {names}")
    parts = [[_moved(c, own, offset) for c in own.columns] for own, offset in zip(data, offsets, strict=True)]
    columns = [first.joined(others) for first, *others in zip(*parts, strict=True)]
    numbers = np.repeat(np.arange(len(data), dtype=np.int32), [len(own) for own in data])
    joined = DataSet((*columns, Values("part", numbers[:, None])), "", data[0].label)
    digest = hashlib.blake2b(b"".join(bytes.fromhex(own.fingerprint) for own in data), digest_size=8)
    digest.update(b"" if joined.labels is None else joined.labels.tobytes())
    return replace(joined, fingerprint=digest.hexdigest())


def _moved(column: Column, data: DataSet, offset: int) -> Column:
    """Return a part's column in the form of the joined data set."""
    if column.name != data.label or column.values is None or offset == 0:
        return column
    labels = column.values.astype(np.int64) + offset
    if (labels != labels.astype(np.int32)).any():
        raise ArgumentError(f"expected labels of at most 32 bits, got {int(labels.max())} with the offset {offset}")
    return Values(column.name, labels.astype(np.int32), layout=column.layout)


def _check_part(number: int, part: SourcePart) -> None:
    if not issubclass(part.operator, Reader):
        raise ArgumentError(
            f"expected `parts` to be readers of files, got `{part.operator.name}` as part {number}. Data from Python "
            "are joined in Python"
        )
    own = part.operator.arguments
    given = [name for name in (*NAMES, "on_error") if name in own and part.args[name] != own[name].default]
    if given:
        raise ArgumentError(
            f"expected `{'`, `'.join(given)}` with `parts`, not in part {number}: the joined order is divided, and "
            "judged, as one"
        )
