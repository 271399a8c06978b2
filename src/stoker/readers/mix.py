# SPDX-License-Identifier: Apache-2.0
"""``readers.mix``: readers in fixed proportions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..contract.argument import arg
from ..contract.errors import ArgumentError
from ..contract.reader import BoundSampler, Ints, Shards
from ..contract.whole import whole
from ._joined import Joined, Orders, Woven
from ._samplers import quotas
from ._sharding import shards_of
from .order import Interleaved

_LENGTHS = ("sum", "shortest", "longest")


class MixReader(Joined, name="readers.mix"):
    """Read the samples of several readers in proportion to ``weights``, in a drawn order.

    ``fn.readers.mix([a, b], weights=[0.8, 0.2])``, with what ``fn.readers.file`` returned. Outputs: the bytes, uint8
    ``(N,)``, the label, int32 ``(1,)``, and the number of the part that the sample is from, int32 ``(1,)``.

    The proportions hold in every block of samples (as long as the weights' smallest common terms, at most 1000), not
    only on average. Each part is gone through in its own order, whole before any of it comes again, and goes on from
    epoch to epoch; every time that it begins again is an epoch of its own, with another order if it is shuffled. A
    sample that comes several times gets another augmentation each time.
    """

    weights = arg("object", None, doc="The share of each part; they need not sum to 1. By default all are equal.")
    length = arg(
        "object", "sum", doc="Samples of an epoch, a number or: sum, as many as the parts' epochs have together; "
        "shortest, as many as it takes, in proportion, until the first part has been gone through; longest, until all "
        "have.",
    )  # fmt: skip

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check what does not depend on the disk."""
        super().validate(args)
        length, weights = args["length"], args["weights"]
        if not (isinstance(length, str) and length in _LENGTHS) and (whole(length) or 0) < 1:
            raise ArgumentError(f"expected `length` in {_LENGTHS} or a number >= 1, got {length!r}")
        if weights is not None:
            if not hasattr(weights, "__len__") or len(weights) != len(args["parts"]):
                raise ArgumentError(f"expected a weight for each of {len(args['parts'])} parts, got {weights!r}")
            quotas(list(weights), "part")

    @classmethod
    def shards(cls, args: Mapping[str, Any]) -> Shards:
        return shards_of(args)

    @classmethod
    def join(
        cls, args: Mapping[str, Any], parts: Orders, total: tuple[int, Any], shards: Shards
    ) -> tuple[BoundSampler, str]:
        shares = quotas([1.0] * len(parts.orders) if args["weights"] is None else list(args["weights"]), "part")
        size = _length(args["length"], parts.sizes, shares)
        return Woven(Interleaved(size, parts.sizes, shares, args["seed"]), parts), f"{shares.tolist()}"


def _length(wanted: Any, sizes: Ints, shares: Ints) -> int:
    if wanted == "sum":
        return int(sizes.sum())
    lasts = sizes * int(shares.sum()) / shares  # positions until a part has been gone through
    if wanted == "shortest":
        return max(1, int(np.floor(lasts.min())))
    return int(np.ceil(lasts.max())) if wanted == "longest" else int(wanted)
