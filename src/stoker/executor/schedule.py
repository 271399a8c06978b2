# SPDX-License-Identifier: Apache-2.0
"""Order of rows: positions of one global order per epoch, strided over the shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..contract.random import Stream
from ..contract.reader import OpenSource, Shards

AtEnd = Literal["stop", "exact", "fill", "go_on"]
_SUBSTITUTES = 0xFFFFFFFF  # a draw id that no operator gets
_WINDOW = 1024  # rows that are computed together
_ONE_SHARD = Shards()


@dataclass(slots=True, eq=False)
class Rows:
    """Rows of one batch.

    Attributes:
        keys: uint64 row keys, which decide the rows' random numbers.
        epochs: int64.
        indices: for each reader, the data set's index of every row.
        epoch, position: the schedule's position after these rows.
    """

    keys: npt.NDArray[np.uint64]
    epochs: npt.NDArray[np.int64]
    indices: tuple[npt.NDArray[np.int64], ...]
    epoch: int
    position: int

    def __len__(self) -> int:
        return len(self.keys)


class _Window(NamedTuple):
    """Adjacent rows of an epoch, from which batches are cut. Its arrays are read-only."""

    epoch: int
    origin: int
    begin: int
    end: int
    keys: npt.NDArray[np.uint64]
    indices: tuple[npt.NDArray[np.int64], ...]


class Schedule:
    """Order of rows for a pipeline.

    Its whole state is (epoch, number of positions that all shards together have taken).

    Attributes:
        stride: of that many batches of an epoch, the first is taken and the others are passed over: other processes
            compute them.
    """

    def __init__(self, sources: Mapping[int, OpenSource], readers: tuple[int, ...], seed: int) -> None:
        self._sources = [sources[r] for r in readers]
        self._seed = seed
        self.epoch = 0
        self.position = 0  # rows of this shard taken in the epoch
        self.stride = 1
        self._origin = 0  # first position that the shards share; not 0 after a change of their number
        self._same_epochs = np.empty(0, np.int64)  # cached `epochs` of batches within one epoch
        # Each call of a sampler costs as much for one batch as for many. Only orders that a position decides qualify.
        self._may_window = bool(self._sources) and all(getattr(s.sampler, "is_pure", False) for s in self._sources)
        self._window: _Window | None = None

    @property
    def is_pure(self) -> bool:
        """Return whether the order is decided by seed, epoch and position alone."""
        return self._may_window

    @property
    def epoch_size(self) -> int | None:
        """Return the number of rows of this shard in an epoch; None if the order is endless."""
        size = self._size
        return None if size is None else self._shards.length(size)

    @property
    def _size(self) -> int | None:
        return self._sources[0].sampler.size if self._sources else None

    @property
    def number_of_shards(self) -> int:
        """Return the number of shards of the first reader."""
        return self._shards.number

    @property
    def _shards(self) -> Shards:
        return self._sources[0].shards if self._sources else _ONE_SHARD

    @property
    def end(self) -> int | None:
        """Return the position at which the current epoch ends; None if it is endless."""
        size = self._size
        return None if size is None else self._shards.length(size, self._origin)

    @property
    def _own_end(self) -> int | None:
        """Return :attr:`end` without the rows that make shards equal."""
        return self.own_end(self.epoch, self._origin)

    def own_end(self, epoch: int, origin: int) -> int | None:
        """Return the position after the last row of an epoch that no other shard delivers too; None if it is endless.

        Args:
            epoch: number of the epoch.
            origin: position of the epoch's order at which the shards began to share it.
        """
        size = self._size
        return None if size is None else self._shards.own_length(size, epoch, origin)

    def origin(self, position: int, consumed: int) -> int:
        """Return the position of the epoch's order at which the shards began to share it, from a mark's numbers."""
        return consumed - position * self._shards.number

    def own_epoch_size(self, epoch: int) -> int | None:
        """Return :attr:`epoch_size` without the rows that make shards equal: it may differ from epoch to epoch."""
        size = self._size
        return None if size is None else self._shards.own_length(size, epoch)

    def consumed(self, position: int) -> int:
        """Return the positions of the epoch that all shards have taken when this one is at ``position``."""
        return self._origin + position * self._shards.number

    def seek(self, epoch: int, consumed: int) -> None:
        """Continue after ``consumed`` positions of an epoch's order. Another number of shards may have taken them."""
        self.epoch = epoch
        self.position, self._origin = divmod(consumed, self._shards.number)

    def next(self, count: int, at_end: AtEnd) -> Rows | None:
        """Return the next ``count`` rows.

        ``at_end`` decides what happens at the end of an epoch. "stop": a batch of fewer rows, then None; all shards
        deliver the same number of rows. "exact": the same, without the rows that make shards equal, so that all shards
        together deliver each position once. "fill": the last batch is completed with the first rows of the next epoch,
        which still begins with these rows; then None. "go_on": the next epoch follows seamlessly. With a padding
        reader, "fill" and "go_on" complete the epoch's last batch by repeating the last sample instead.
        """
        if self._may_window and self.stride == 1 and 0 < count <= _WINDOW // 2:
            within = self._cut(count)
            if within is not None:
                return within
        end = None if not self._sources else self._own_end if at_end == "exact" else self.end
        if end is None:
            return self._next_endless(count)
        pads = self._shards.is_padded
        parts, wanted = [], count
        while count and self.epoch_size:
            take = min(count, end - self.position)
            if take > 0:
                parts.append((self.epoch, self._origin, self.position, take))
                self.position += take
                count -= take
            if count:
                if at_end != "go_on" or (pads and parts):
                    break
                self.start_epoch(self.epoch + 1)
                end = self.epoch_size
        if parts and count and pads and at_end in ("fill", "go_on"):
            parts.append((self.epoch, self._origin, end or 0, count))
            count = 0
        after = self.epoch
        while parts and count and at_end == "fill":
            after, take = after + 1, min(count, self.epoch_size or 0)
            parts.append((after, 0, 0, take))
            count -= take
        rows = self._take(parts) if parts else None
        self.position = min(self.position + (self.stride - 1) * wanted, max(self.position, end))
        return rows

    def _cut(self, count: int) -> Rows | None:
        """Return the next rows from the window, which is moved if needed; None if they reach the end of the epoch."""
        begin, end = self.position, self.position + count
        window = self._window
        if (
            window is None
            or window.epoch != self.epoch
            or window.origin != self._origin
            or not window.begin <= begin <= end <= window.end
        ):
            last, own = self.end, self._own_end
            if last is None or own is None or end > min(last, own):
                return None
            rows = self._take([(self.epoch, self._origin, begin, min(_WINDOW, min(last, own) - begin))])
            for array in (rows.keys, *rows.indices):
                array.flags.writeable = False
            window = _Window(self.epoch, self._origin, begin, begin + len(rows), rows.keys, rows.indices)
            self._window = window
        self.position = end
        at = slice(begin - window.begin, end - window.begin)
        # Users get the keys, and may write to them.
        keys, indices = window.keys[at].copy(), tuple([i[at] for i in window.indices])
        return Rows(keys, self._epochs(self.epoch, count), indices, self.epoch, end)

    def _next_endless(self, count: int) -> Rows:
        start, self.position = self.position, self.position + count * self.stride
        if self._sources:
            return self._take([(self.epoch, self._origin, start, count)])
        keys = np.arange(start, start + count, dtype=np.uint64)
        return Rows(keys, self._epochs(self.epoch, count), (), self.epoch, self.position)

    def _epochs(self, epoch: int, count: int) -> npt.NDArray[np.int64]:
        """Return ``count`` times ``epoch``. Batches of equal size share the array."""
        if self._same_epochs.size != count or (count and self._same_epochs[0] != epoch):
            self._same_epochs = np.full(count, epoch, np.int64)
            self._same_epochs.flags.writeable = False
        return self._same_epochs

    def start_epoch(self, epoch: int) -> None:
        self.epoch, self.position, self._origin = epoch, 0, 0

    def _take(self, parts: list[tuple[int, int, int, int]]) -> Rows:
        keys: list[npt.NDArray[np.uint64]] = []
        epochs: list[npt.NDArray[np.int64]] = []
        indices: list[list[npt.NDArray[np.int64]]] = [[] for _ in self._sources]
        for epoch, origin, start, count in parts:
            local = np.arange(start, start + count, dtype=np.int64)
            epochs.append(self._epochs(epoch, count))
            where = self._shards.positions(self._size, epoch, origin, local)
            for n, source in enumerate(self._sources):
                if self._is_in_step(source):
                    of_source = source.sampler.indices(self._seed, epoch, where)
                else:
                    of_source = self._companion(source, epoch, origin, local)
                if n == 0:
                    keys.append(source.sampler.keys(epoch, where, of_source))
                indices[n].append(of_source)
        return Rows(_join(keys), _join(epochs), tuple(_join(i) for i in indices), self.epoch, self.position)

    def _is_in_step(self, source: OpenSource) -> bool:
        """Return whether a source has the first one's positions: epochs of one size, in the same shards.

        Sources of pairs (images and masks) stay together in this way, also if the shards do not divide the epoch.
        """
        return source.sampler.size == self._size and source.shards == self._shards

    def _companion(
        self, source: OpenSource, epoch: int, origin: int, local: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return the indices of a second reader, which runs through its own epochs independently of the first reader's
        size.
        """
        sampler, size, shards = source.sampler, source.sampler.size, source.shards
        if size is None:
            return sampler.indices(self._seed, epoch, shards.positions(None, epoch, origin, local))
        if shards.is_contiguous:
            ordinal, length = local + epoch * (self.epoch_size or 0), shards.length(size)
        else:
            where = origin + local * shards.number + shards.shard_in(epoch)
            ordinal, length = where + epoch * (self.epoch_size or 0) * shards.number, size
        out = np.empty_like(local)
        for own in np.unique(ordinal // length):
            mask = ordinal // length == own
            where = ordinal[mask] % length
            if shards.is_contiguous:
                where = shards.positions(size, int(own), 0, where)
            out[mask] = sampler.indices(self._seed, int(own), where)
        return out

    # ---- substitutes ----

    def substitutes(self, rows: Rows, bad: list[int], attempt: int) -> Rows:
        """Return substitutes for the rows ``bad``: other positions of the same epoch's order.

        Seed, epoch, row key and attempt alone decide the choice. The rows keep their keys and so their augmentation. A
        contiguous shard takes substitutes from its own part, whose files may be the only local ones.
        """
        size, shards = self._size, self._shards
        assert size is not None, "an endless order has no other positions"
        columns: list[list[npt.NDArray[np.int64]]] = [[] for _ in self._sources]
        for r in bad:
            epoch = int(rows.epochs[r])
            stream = Stream(self._seed, epoch, int(rows.keys[r]), _SUBSTITUTES)
            for _ in range(attempt + 1):
                number = stream.word() << 32 | stream.word()
            # A position of the whole order as (round, position in the round): the same with any number of shards.
            place = number % (shards.length(size) if shards.is_contiguous else size)
            local = np.asarray([place if shards.is_contiguous else place // shards.number], np.int64)
            turn = shards.shard_in(epoch) if shards.is_contiguous else place % shards.number
            for n, source in enumerate(self._sources):
                columns[n].append(self._elsewhere(source, epoch, local, turn))
        indices = tuple(_join(i) for i in columns)
        return Rows(rows.keys[bad], rows.epochs[bad], indices, rows.epoch, rows.position)

    def _elsewhere(
        self, source: OpenSource, epoch: int, local: npt.NDArray[np.int64], turn: int
    ) -> npt.NDArray[np.int64]:
        """Return a source's index at row ``local`` of the shard ``turn``."""
        is_in_step = self._is_in_step(source)
        if source.shards.number == self._shards.number:
            shards = replace(source.shards, id=turn, is_sticky=True, is_padded=False)
            source = replace(source, shards=shards)
        if not is_in_step:
            return self._companion(source, epoch, 0, local)
        where = source.shards.positions(source.sampler.size, epoch, 0, local)
        return source.sampler.indices(self._seed, epoch, where)


T = TypeVar("T", bound=np.generic)


def _join(parts: list[npt.NDArray[T]]) -> npt.NDArray[T]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
