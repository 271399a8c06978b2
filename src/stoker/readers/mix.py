# SPDX-License-Identifier: Apache-2.0
"""``readers.mix``: readers in fixed proportions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..contract.argument import arg
from ..contract.errors import ArgumentError
from ..contract.reader import BoundSampler, Ints, Shards
from ..contract.text import brief
from ..contract.whole_number import as_whole_number
from ._combined import CombinedReader, MixedOrder, PartOrders
from ._samplers import quotas
from ._sharding import shards_of
from .order import QuotaOrder, own_seed

_LENGTHS = ("sum", "shortest", "longest")


class MixReader(CombinedReader, name="readers.mix"):
    """Read the samples of several readers in proportion to ``weights``, in a random order.

    Usage: ``fn.readers.mix([a, b], weights=[0.8, 0.2])`` with the outputs of ``fn.readers.file``. Outputs: the bytes,
    uint8 ``(N,)``, the label, int32 ``(1,)``, and the number of the sample's part, int32 ``(1,)``.

    The proportions hold in every block of samples, not only on average. A block is as long as the sum of the weights in
    lowest terms, at most 1000. Each part runs in its own order. All its samples are used before one repeats, across
    epochs of the pipeline. Each repetition is an epoch of the part, with another order if the part is shuffled. A
    sample that occurs several times gets another augmentation each time.
    """

    weights = arg("object", None, doc="Share of each part. Shares need not sum to 1. By default all are equal.")
    length = arg(
        "object", "sum", doc="Samples of an epoch: a number; or sum, the total of the parts' epochs; shortest, until "
        "the first part is used up; or longest, until all parts are.",
    )  # fmt: skip

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check what does not depend on the disk."""
        super().validate(args)
        length, weights = args["length"], args["weights"]
        if not (isinstance(length, str) and length in _LENGTHS) and (as_whole_number(length) or 0) < 1:
            raise ArgumentError(f"expected `length` in {_LENGTHS} or a number >= 1, got {brief(length)}")
        if weights is not None:
            try:
                listed = list(weights)
            except Exception as error:
                raise ArgumentError(f"expected a list of numbers as `weights`, got {brief(weights)}") from error
            if len(listed) != len(args["parts"]):
                raise ArgumentError(f"expected a weight for each of {len(args['parts'])} parts, got {brief(weights)}")
            quotas(listed, "part")

    @classmethod
    def shards(cls, args: Mapping[str, Any]) -> Shards:
        return shards_of(args)

    @classmethod
    def join(
        cls, args: Mapping[str, Any], parts: PartOrders, total: tuple[int, Any], shards: Shards
    ) -> tuple[BoundSampler, str]:
        shares = quotas([1.0] * len(parts.orders) if args["weights"] is None else list(args["weights"]), "part")
        size = _length(args["length"], parts.sizes, shares)
        return MixedOrder(QuotaOrder(size, parts.sizes, shares, own_seed(args)), parts), f"{shares.tolist()}"


def _length(wanted: Any, sizes: Ints, shares: Ints) -> int:
    if wanted == "sum":
        return int(sizes.sum())
    lasts = sizes * int(shares.sum()) / shares  # positions until all samples of a part are used
    if wanted == "shortest":
        return max(1, int(np.floor(lasts.min())))
    return int(np.ceil(lasts.max())) if wanted == "longest" else int(wanted)
