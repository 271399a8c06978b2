# SPDX-License-Identifier: Apache-2.0
"""What a reader is: a sampler (position -> index and row key), shards, a storage, and where a sample came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class BoundSampler(Protocol):
    """Which sample each position of an epoch is, for a data set of known size."""

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

    @property
    def forward_only(self) -> str | None:
        """Why the order cannot be entered anywhere; None if it can."""
        ...


@dataclass(frozen=True)
class Shards:
    """Which positions of an epoch's order one of several pipelines takes. All take equally many.

    Strided: every ``number``-th one, so that what all together have taken is always a prefix of the order.
    Contiguous: from ``floor(i * size / number)`` on, as in NVIDIA DALI.

    Attributes:
        number, id: how many there are, and which one this is.
        sticks: take the same part in every epoch; else the next one, as in DALI.
        pads: complete the last round, and the last batch, by repeating the last sample of the part.
    """

    number: int = 1
    id: int = 0
    contiguous: bool = False
    sticks: bool = False
    pads: bool = False

    def turn(self, epoch: int) -> int:
        """Which part this pipeline takes in an epoch."""
        return self.id if self.sticks else (self.id + epoch) % self.number

    def length(self, size: int, origin: int = 0) -> int:
        """How many rows each takes of what is left of an epoch after ``origin`` positions."""
        return -(-(size - origin) // self.number)

    def positions(self, size: int | None, epoch: int, origin: int, local: Ints) -> Ints:
        """The positions in the epoch's order of this pipeline's rows ``local``; ``size`` None: endless.

        Args:
            size: positions in an epoch.
            epoch: number of the epoch.
            origin: position at which the pipelines began to take turns.
            local: numbers of rows of this pipeline, counted from ``origin``.
        """
        if size is None:
            return origin + local * self.number + self.id
        turn = self.turn(epoch)
        if not self.contiguous:
            if self.pads:  # by the last one of this part, or of all if it has none left
                last = (size - 1 - origin - turn) // self.number
                if last < 0:
                    return np.full_like(local, size - 1)
                local = np.minimum(local, last)
            return (origin + local * self.number + turn) % size
        low, high = turn * size // self.number, (turn + 1) * size // self.number
        return np.minimum(low + local, max(high - 1, 0)) if self.pads else (low + local) % size


@dataclass(frozen=True)
class Part:
    """A source that is a part of another one: its operator, with the constants of its call."""

    operator: Any  # a class of Operator
    args: Mapping[str, Any]


@dataclass(frozen=True)
class OpenSource:
    """An opened data set.

    Attributes:
        sampler: order of the samples.
        storage: what the native reader reads from (a ``FileTable``).
        labels: one per sample, or None.
        fingerprint: changes when the data set does (names, order, labels).
        shards: which part of every epoch this pipeline takes.
        order: the sampler in a few words, for messages about states that do not fit.
        parts: the part that each sample is from, where the data set is made of several; else None.
    """

    sampler: BoundSampler
    storage: Any
    labels: Sequence[int] | npt.NDArray[np.int32] | None
    fingerprint: str
    shards: Shards = Shards()
    order: str = ""
    parts: npt.NDArray[np.int32] | None = None

    @property
    def samples(self) -> int:
        """Samples in the data set, whatever the sampler takes of them."""
        return len(self.storage) if self.storage is not None else int(self.sampler.size or 0)

    def place(self, index: int) -> tuple[str, int]:
        """The file that sample ``index`` is in, and at which byte it begins."""
        known = self.storage is not None and 0 <= index < len(self.storage)  # a user's own sampler may give any number
        return bytes(self.storage[index]).decode(errors="surrogateescape") if known else "", 0

    def describe(self, index: int) -> str:
        """Where sample ``index`` comes from, for messages."""
        return self.place(index)[0].encode(errors="surrogateescape").decode(errors="replace") or "no sample"
