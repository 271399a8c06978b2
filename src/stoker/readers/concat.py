# SPDX-License-Identifier: Apache-2.0
"""``readers.concat``: concatenated readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contract.argument import arg
from ..contract.errors import ArgumentError
from ..contract.reader import BoundSampler, Shards
from ._combined import CombinedReader, ConcatenatedOrder, PartOrders
from ._samplers import Sequential, Shuffled, as_sampler
from ._sharding import shards_of
from .order import PermutedOrder, own_seed


class ConcatReader(CombinedReader, name="readers.concat"):
    """Read the samples of several readers as one data set: those of the first, then those of the second, and so on.

    Usage: ``fn.readers.concat([a, b])`` with the outputs of ``fn.readers.file``. Outputs: the bytes, uint8 ``(N,)``,
    the label, int32 ``(1,)``, and the number of the sample's part, int32 ``(1,)``. An epoch has every sample that an
    epoch of each part has, in the parts' own orders; with ``random_shuffle`` a permutation of all of them.
    """

    random_shuffle = arg("bool", False, doc="Another order every epoch: a permutation of all parts' samples together.")
    sampler = arg(
        "object", None, doc="Samples of an epoch, as indices into all parts together; as for `readers.file`.",
    )  # fmt: skip

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the disk."""
        super().validate(args)
        if args["sampler"] is not None and args["random_shuffle"]:
            raise ArgumentError("`sampler` says the order: expected no `random_shuffle` with it")

    @classmethod
    def shards(cls, args: Mapping[str, Any]) -> Shards:
        return shards_of(args, shuffled=args["random_shuffle"])

    @classmethod
    def join(
        cls, args: Mapping[str, Any], parts: PartOrders, total: tuple[int, Any], shards: Shards
    ) -> tuple[BoundSampler, str]:
        if args["sampler"] is not None:
            if any(not isinstance(order, PermutedOrder) or order.shuffle for order in parts.orders):
                raise ArgumentError(
                    "`sampler` chooses among the samples of all parts: expected parts without a `sampler` or a shuffle "
                    "of their own with it"
                )
            sampler = as_sampler(args["sampler"])
            outer = sampler.bind(*total, shards, own_seed(args))
        else:
            sampler = Shuffled() if args["random_shuffle"] else Sequential()
            outer = sampler.bind(int(parts.sizes.sum()), None, shards, own_seed(args))
        return ConcatenatedOrder(outer, parts, own_seed(args)), f"{sampler!r}"
