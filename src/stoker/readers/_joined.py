# SPDX-License-Identifier: Apache-2.0
"""Several readers as one: their files in one list, their orders one after the other or woven in proportion."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..contract.argument import ON_ERROR, arg
from ..contract.errors import ArgumentError
from ..contract.lowering import Lowering
from ..contract.operator import Operator
from ..contract.reader import BoundSampler, Ints, OpenSource, Part, Shards
from ..contract.step import Value
from ..contract.types import DType
from ..contract.whole import whole
from ..native import _native
from ._listing import PARTIAL, Listing
from ._sharding import NAMES, NUM_SHARDS, PAD_LAST_BATCH, SHARD_ID, SHARDING, STICK_TO_SHARD, check_shards
from .order import Interleaved, Keys, Ordered, Repeating


class Orders:
    """The parts' own orders, over their places in the joined list."""

    def __init__(self, orders: Sequence[BoundSampler], counts: Sequence[int]) -> None:
        self.orders = orders
        self._starts = np.cumsum(counts) - counts
        self.sizes = np.asarray([order.size for order in orders], np.int64)

    def indices(self, seed: int, part: int, epoch: int, positions: Ints) -> Ints:
        """Samples of the joined list at positions of one part's epoch; each part has a seed of its own."""
        own = _native.epoch_key(seed, part)
        found: Ints = self._starts[part] + self.orders[part].indices(own, epoch, positions)
        return found

    @property
    def forward_only(self) -> str | None:
        """Why an order cannot be entered anywhere; None if all can."""
        return next((o.forward_only for o in self.orders if o.forward_only), None)


@dataclass(frozen=True, eq=False)
class Chained:
    """Parts one after the other; ``outer`` is the order of their positions."""

    outer: BoundSampler
    parts: Orders
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
        once = all(isinstance(order, Ordered) for order in (self.outer, *self.parts.orders))
        return (indices if once else positions).astype(np.uint64)


@dataclass(frozen=True, eq=False)
class Woven(Repeating):
    """Parts in fixed proportions, each in its own order, as often as its turn comes."""

    order: Interleaved
    parts: Orders

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


class Joined(Operator, ABC):
    """What readers of several readers share. A subclass says the order."""

    devices = ("cpu",)
    inputs = (0, 0)
    positional = ("parts",)
    whole_sources = ("parts",)
    outputs = 3
    kind = "source"
    incidental: ClassVar[tuple[str, ...]] = (*NAMES, "on_error")
    parts = arg("object", doc="What the readers to join returned, in a list; at least one.")
    label_offsets = arg(
        "object", None, doc='What is added to the labels of each part: a list of numbers, or "disjoint" for labels '
        "that begin behind those of the part before; by default nothing.",
    )  # fmt: skip
    seed = arg("int", None, doc="Seed of the orders; by default the pipeline's. A part's own `seed` stays.")
    num_shards = NUM_SHARDS
    shard_id = SHARD_ID
    sharding = SHARDING
    stick_to_shard = STICK_TO_SHARD
    pad_last_batch = PAD_LAST_BATCH
    on_error = ON_ERROR

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check what does not depend on the disk."""
        check_shards(args)
        if not args["parts"]:
            raise ArgumentError("expected at least one reader in `parts`, got none")
        for number, part in enumerate(args["parts"]):
            _check_part(number, part)
        offsets = args["label_offsets"]
        if offsets is not None and offsets != "disjoint":
            numbers = isinstance(offsets, (list, tuple)) and all(whole(x) is not None for x in offsets)
            if not numbers or len(offsets) != len(args["parts"]):
                raise ArgumentError(
                    f'expected `label_offsets` to be "disjoint" or a whole number for each of {len(args["parts"])} '
                    f"parts, got {offsets!r}"
                )

    @classmethod
    @abstractmethod
    def shards(cls, args: Mapping[str, Any]) -> Shards:
        """How epochs are divided."""

    @classmethod
    @abstractmethod
    def join(
        cls, args: Mapping[str, Any], parts: Orders, total: tuple[int, Any], shards: Shards
    ) -> tuple[BoundSampler, str]:
        """The order of the parts, and its name; ``total`` are the number of all samples and their labels."""

    @classmethod
    def open(cls, args: Mapping[str, Any]) -> OpenSource:
        """List the files of all parts. ArgumentError for one without files, OSError for the disk's."""
        joined = Listing("")
        counts, orders, names, offset = [], [], [], 0
        for number, part in enumerate(args["parts"]):
            try:
                listing, sampler = part.operator.listed(part.args)
                order = sampler.bind(len(listing), listing.labels, Shards(), part.args["seed"])
            except ArgumentError as error:
                raise ArgumentError(f"part {number}: {error}") from error
            if order.size is None:
                raise ArgumentError(f"part {number}: expected a `sampler` with a length, got an endless one")
            given = args["label_offsets"]
            joined.extend(listing, offset if given == "disjoint" else given[number] if given else 0)
            offset += int(listing.labels.max()) + 1
            counts.append(len(listing))
            orders.append(order)
            names.append(repr(sampler))
        table, labels, digest = joined.finish()
        shards = cls.shards(args)
        order, name = cls.join(args, Orders(orders, counts), (len(labels), labels), shards)
        numbers = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        return OpenSource(order, table, labels, digest, shards, f"{name} of {', '.join(names)}", numbers)

    def lower(self, c: Lowering) -> tuple[Value, ...]:
        reader, source = c.reader(), c.source
        data = c.opaque(DType.UINT8, 1)
        c.emit("read", [], [data], attrs=(source.storage, reader), allocates=True, partial=PARTIAL)
        label, part = (
            c.native("lookup", [], [(DType.INT32, (1,), "")], attrs=(numbers, reader))[0]
            for numbers in (source.labels, source.parts)
        )
        return data, label, part


def _check_part(number: int, part: Part) -> None:
    if not hasattr(part.operator, "listed"):
        raise ArgumentError(
            f"expected `parts` to be readers of files, got `{part.operator.name}` as part {number}. Data from Python "
            "are joined in Python"
        )
    given = [name for name in (*NAMES, "on_error") if part.args[name] != part.operator.arguments[name].default]
    if given:
        raise ArgumentError(
            f"expected `{'`, `'.join(given)}` beside `parts`, not in part {number}: the joined order is divided, and "
            "judged, as one"
        )
