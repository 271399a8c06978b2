# SPDX-License-Identifier: Apache-2.0
"""Which rows come next: positions of one global order per epoch, strided over the shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np
import numpy.typing as npt

from ..contract.reader import OpenSource

AtEnd = Literal["stop", "fill", "go_on"]


@dataclass(slots=True, eq=False)
class Rows:
    """The rows of one batch.

    Attributes:
        keys: uint64, what the rows' random numbers follow from.
        epochs: int64.
        indices: per reader, the data set's index of every row.
        epoch, position: where the schedule stands after these rows.
    """

    keys: npt.NDArray[np.uint64]
    epochs: npt.NDArray[np.int64]
    indices: tuple[npt.NDArray[np.int64], ...]
    epoch: int
    position: int

    def __len__(self) -> int:
        return len(self.keys)


class Schedule:
    """The order of rows for a pipeline; its whole state is (epoch, how much of it all shards together have taken)."""

    def __init__(self, sources: Mapping[int, OpenSource], readers: tuple[int, ...], seed: int) -> None:
        self._sources = [sources[r] for r in readers]
        self._seed = seed
        self.epoch = 0
        self.position = 0  # rows of this shard taken in the epoch
        self._origin = 0  # where the shards begin to take turns: not at 0 after a change of their number
        self._same = np.empty(0, np.int64)

    @property
    def epoch_size(self) -> int | None:
        """Rows of this shard in an epoch; None if the pipeline has no end."""
        if not self._sources or self._sources[0].sampler.size is None:
            return None
        return -(-int(self._sources[0].sampler.size or 0) // self._shards)

    @property
    def _shards(self) -> int:
        return self._sources[0].num_shards if self._sources else 1

    @property
    def end(self) -> int | None:
        """The position at which the running epoch ends; None if it does not."""
        if self.epoch_size is None:
            return None
        return -(-(int(self._sources[0].sampler.size or 0) - self._origin) // self._shards)

    def consumed(self, position: int) -> int:
        """How much of the running epoch's order all shards have taken when this one stands at ``position``."""
        return self._origin + position * self._shards

    def seek(self, epoch: int, consumed: int) -> None:
        """Go on where ``consumed`` rows of an epoch's order have been taken, maybe by another number of shards."""
        self.epoch = epoch
        self.position, self._origin = divmod(consumed, self._shards)

    def next(self, count: int, at_end: AtEnd) -> Rows | None:
        """The next ``count`` rows.

        At the end of an epoch ``at_end`` says what happens. "stop": a batch of fewer rows, then None. "fill": the last
        batch is completed with the next epoch's first rows (which begins with them nevertheless), then None.
        "go_on": the next epoch follows without a seam.
        """
        end = self.end
        if end is None:
            if self._sources:
                return self._take([(self.epoch, self._origin, self.position, count)])
            keys = np.arange(self.position, self.position + count, dtype=np.uint64)
            self.position += count
            return Rows(keys, self._epochs(self.epoch, count), (), self.epoch, self.position)
        parts = []
        while count and self.epoch_size:
            take = min(count, end - self.position)
            if take > 0:
                parts.append((self.epoch, self._origin, self.position, take))
                self.position += take
                count -= take
            if count:
                if at_end != "go_on":
                    break
                self.start_epoch(self.epoch + 1)
                end = self.epoch_size
        after = self.epoch
        while parts and count and at_end == "fill":
            after, take = after + 1, min(count, self.epoch_size or 0)
            parts.append((after, 0, 0, take))
            count -= take
        return self._take(parts, advance=False) if parts else None

    def _epochs(self, epoch: int, count: int) -> npt.NDArray[np.int64]:
        """``count`` times ``epoch``; batches of one size share the array."""
        if self._same.size != count or (count and self._same[0] != epoch):
            self._same = np.full(count, epoch, np.int64)
            self._same.flags.writeable = False
        return self._same

    def start_epoch(self, epoch: int) -> None:
        self.epoch, self.position, self._origin = epoch, 0, 0

    def _take(self, parts: list[tuple[int, int, int, int]], *, advance: bool = True) -> Rows:
        keys: list[npt.NDArray[np.uint64]] = []
        epochs: list[npt.NDArray[np.int64]] = []
        indices: list[list[npt.NDArray[np.int64]]] = [[] for _ in self._sources]
        for epoch, origin, start, count in parts:
            local = np.arange(start, start + count, dtype=np.int64)
            epochs.append(self._epochs(epoch, count))
            for n, source in enumerate(self._sources):
                where = origin + local * source.num_shards + source.shard_id
                taken, key = self._positions(source, epoch, where, main=n == 0)
                indices[n].append(taken)
                if n == 0:
                    keys.append(key)
            if advance:
                self.position = start + count
        return Rows(_join(keys), _join(epochs), tuple(_join(i) for i in indices), self.epoch, self.position)

    def _positions(
        self, source: OpenSource, epoch: int, where: npt.NDArray[np.int64], *, main: bool
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        sampler, size = source.sampler, source.sampler.size
        if size is None:
            found = sampler.indices(self._seed, epoch, where)
            return found, sampler.keys(epoch, where, found)
        if main:
            where = where % size  # the shards are equally long: the last ones begin the order again
            found = sampler.indices(self._seed, epoch, where)
            return found, sampler.keys(epoch, where, found)
        # A second reader goes on through its own epochs, whatever the first one's size.
        ordinal = where + epoch * (self.epoch_size or 0) * source.num_shards
        out = np.empty_like(where)
        for own in np.unique(ordinal // size):
            mask = ordinal // size == own
            out[mask] = sampler.indices(self._seed, int(own), ordinal[mask] % size)
        return out, out.astype(np.uint64)


T = TypeVar("T", bound=np.generic)


def _join(parts: list[npt.NDArray[T]]) -> npt.NDArray[T]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
