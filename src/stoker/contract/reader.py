# SPDX-License-Identifier: Apache-2.0
"""What a reader is: a sampler (ordinal -> index and row key), a storage, and a way to say where a sample came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Sampler(Protocol):
    """Which sample each position of an epoch is. Replaceable by a user's own."""

    @property
    def size(self) -> int | None:
        """Positions in an epoch; None: endless."""
        ...

    def indices(self, seed: int, epoch: int, positions: Ints) -> Ints:
        """The data set's index for every position of the epoch."""
        ...

    def keys(self, epoch: int, positions: Ints, indices: Ints) -> npt.NDArray[np.uint64]:
        """The row keys: the index where each sample comes once, the ordinal where samples repeat."""
        ...


@dataclass(frozen=True)
class OpenSource:
    """An opened data set.

    Attributes:
        sampler: order of the samples.
        storage: what the native reader reads from (a ``FileTable``).
        labels: one per sample, or None.
        fingerprint: changes when the data set does (names, order, labels).
        shard_id, num_shards: this pipeline takes the positions ``shard_id + k * num_shards``.
    """

    sampler: Sampler
    storage: Any
    labels: Sequence[int] | npt.NDArray[np.int32] | None
    fingerprint: str
    shard_id: int = 0
    num_shards: int = 1
    pad_last_batch: bool = False
    stick_to_shard: bool = False

    def describe(self, index: int) -> str:
        """Where sample ``index`` comes from, for messages."""
        known = self.storage is not None and 0 <= index < len(self.storage)  # a user's own sampler may give any number
        return bytes(self.storage[index]).decode(errors="replace") if known else "no sample"
