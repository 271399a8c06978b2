# SPDX-License-Identifier: Apache-2.0
"""Which rows come next: positions of one global order per epoch, strided over the shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ..contract.reader import OpenSource


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
    """The order of rows for a pipeline; its whole state is (epoch, position)."""

    def __init__(self, sources: Mapping[int, OpenSource], readers: tuple[int, ...], seed: int) -> None:
        self._sources = [sources[r] for r in readers]
        self._seed = seed
        self.epoch = 0
        self.position = 0  # rows of this shard taken in the epoch

    @property
    def epoch_size(self) -> int | None:
        """Rows of this shard in an epoch; None if the pipeline has no end."""
        if not self._sources or self._sources[0].sampler.size is None:
            return None
        main = self._sources[0]
        return -(-int(main.sampler.size or 0) // main.num_shards)

    def next(self, count: int, *, wrap: bool) -> Rows | None:
        """The next ``count`` rows; without ``wrap`` fewer at the end of an epoch, and None once it is over."""
        size = self.epoch_size
        if size is None:
            if self._sources:
                return self._take([(self.epoch, self.position, count)])
            keys = np.arange(self.position, self.position + count, dtype=np.uint64)
            self.position += count
            return Rows(keys, np.full(count, self.epoch, np.int64), (), self.epoch, self.position)
        if size == 0:
            return None
        parts = []
        while count:
            take = min(count, size - self.position)
            if take:
                parts.append((self.epoch, self.position, take))
                self.position += take
                count -= take
            if count:
                if not wrap:
                    break
                self.epoch, self.position = self.epoch + 1, 0
        return self._take(parts, advance=False) if parts else None

    def start_epoch(self, epoch: int) -> None:
        self.epoch, self.position = epoch, 0

    def _take(self, parts: list[tuple[int, int, int]], *, advance: bool = True) -> Rows:
        keys: list[npt.NDArray[np.uint64]] = []
        epochs: list[npt.NDArray[np.int64]] = []
        indices: list[list[npt.NDArray[np.int64]]] = [[] for _ in self._sources]
        for epoch, start, count in parts:
            local = np.arange(start, start + count, dtype=np.int64)
            epochs.append(np.full(count, epoch, np.int64))
            for n, source in enumerate(self._sources):
                taken, key = self._positions(source, epoch, local, main=n == 0)
                indices[n].append(taken)
                if n == 0:
                    keys.append(key)
            if advance:
                self.position = start + count
        return Rows(_join(keys), _join(epochs), tuple(_join(i) for i in indices), self.epoch, self.position)

    def _positions(
        self, source: OpenSource, epoch: int, local: npt.NDArray[np.int64], *, main: bool
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
        sampler, size = source.sampler, source.sampler.size
        where = local * source.num_shards + source.shard_id
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
