# SPDX-License-Identifier: Apache-2.0
"""Order of samples in groups of like length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..contract.reader import Ints
from ..native import _native
from .order import Keys

_GROUPS = 0xFFFFFFFC  # part of the seed for the order of the groups


@dataclass(frozen=True, eq=False)
class BucketedOrder:
    """All samples, in groups of ``group`` positions whose samples come from one bucket.

    ``members`` lists the samples by length, and ``sizes`` the samples of each bucket in that list. Each epoch permutes
    every bucket and cuts it into groups. The remainders of the buckets, in the order of their lengths, are cut into
    groups too. Then the groups are permuted. An incomplete group is the last one. So a position determines its sample:
    there is no state.
    """

    members: Ints
    sizes: Ints
    group: int
    shuffle: bool = True
    seed: int | None = None
    forward_only: str | None = None

    @property
    def size(self) -> int:
        return len(self.members)

    def indices(self, seed: int, epoch: int, positions: Ints) -> Ints:
        if not self.shuffle:
            found: Ints = self.members[positions]
            return found
        seed = seed if self.seed is None else self.seed
        place = self._place(seed, epoch, positions)
        whole, rest = self.sizes // self.group, self.sizes % self.group
        grouped = int(whole.sum()) * self.group
        in_groups = place < grouped
        # Number within all complete groups, or within all remainders.
        number = np.where(in_groups, place, place - grouped)
        bucket = np.where(
            in_groups,
            np.searchsorted(np.cumsum(whole * self.group), number, side="right"),
            np.searchsorted(np.cumsum(rest), number, side="right"),
        ).astype(np.int64)
        starts = np.where(in_groups, _starts(whole * self.group)[bucket], _starts(rest)[bucket])
        inside = number - starts + np.where(in_groups, 0, whole[bucket] * self.group)
        epochs = np.full_like(positions, epoch)
        inside = _native.permute_each(seed, bucket, epochs, self.sizes[bucket], inside)
        chosen: Ints = self.members[_starts(self.sizes)[bucket] + inside]
        return chosen

    def _place(self, seed: int, epoch: int, positions: Ints) -> Ints:
        """Return the places of positions in the groups before these are permuted."""
        groups = self.size // self.group
        number, inside = np.divmod(positions, self.group)
        key = _native.epoch_key(seed, _GROUPS)
        permuted = _native.permute(key, epoch, max(groups, 1), np.minimum(number, max(groups - 1, 0)))
        place: Ints = np.where(number < groups, permuted, number) * self.group + inside
        return place

    def keys(self, epoch: int, positions: Ints, indices: Ints) -> Keys:
        return indices.astype(np.uint64)


def _starts(sizes: Ints) -> Ints:
    """Return the sum of the sizes before each part."""
    starts: Ints = np.cumsum(sizes) - sizes
    return starts
