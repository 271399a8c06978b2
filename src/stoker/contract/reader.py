# SPDX-License-Identifier: Apache-2.0
"""Readers: a sampler (position -> index and row key), shards, and a data set of columns over storages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from .columns import Column, DataSet
from .operator import Operator
from .storage import RecordLocation, Storage

if TYPE_CHECKING:  # the package's import pays for no steps
    from .feed import Feeder
    from .lowering import Lowering
    from .step import Value

Ints = npt.NDArray[np.int64]


class BoundSampler(Protocol):
    """Order of an epoch over a data set of known size: a map from positions to samples."""

    @property
    def size(self) -> int | None:
        """Return the number of positions in an epoch; None if the order is endless."""
        ...

    def indices(self, seed: int, epoch: int, positions: Ints) -> Ints:
        """Return the data set's index for each of the epoch's ``positions``.

        Args:
            seed: the reader's or the pipeline's seed.
            epoch: number of the epoch, from 0.
            positions: int64.
        """
        ...

    def keys(self, epoch: int, positions: Ints, indices: Ints) -> npt.NDArray[np.uint64]:
        """Return the row keys: the index if each sample occurs once, the ordinal if samples repeat.

        Args:
            epoch: number of the epoch, from 0.
            positions: positions in the order, int64.
            indices: their samples, int64.
        """
        ...

    @property
    def forward_only(self) -> str | None:
        """Return the reason why the order has no random access; None if it has."""
        ...


@dataclass(frozen=True)
class Shards:
    """Part of an epoch's order that one of several pipelines takes. All parts have the same number of positions.

    Strided: every ``number``-th position, so that the positions taken by all pipelines together always form a prefix of
    the order. Contiguous: from ``floor(i * size / number)`` on, as in NVIDIA DALI.

    Attributes:
        number: number of parts.
        id: number of this one, from 0.
        is_contiguous: the part is contiguous rather than strided.
        is_sticky: take the same part in every epoch; otherwise the next one, as in DALI.
        is_padded: complete the last round, and the last batch, by repeating the last sample of the part.
    """

    number: int = 1
    id: int = 0
    is_contiguous: bool = False
    is_sticky: bool = False
    is_padded: bool = False

    def shard_in(self, epoch: int) -> int:
        """Return the part that this pipeline takes in an epoch.

        Args:
            epoch: number of the epoch, from 0.
        """
        return self.id if self.is_sticky else (self.id + epoch) % self.number

    def length(self, size: int, origin: int = 0) -> int:
        """Return the number of rows that each pipeline takes of an epoch's remainder after ``origin`` positions.

        Args:
            size: positions in an epoch.
            origin: position at which the pipelines began to share the order.
        """
        return -(-(size - origin) // self.number)

    def own_length(self, size: int, epoch: int, origin: int = 0) -> int:
        """Return the number of rows of an epoch's remainder that no other pipeline takes: at most :meth:`length`.

        These rows of all pipelines together are the remainder, each position once.

        Args:
            size: positions in an epoch.
            epoch: number of the epoch, from 0.
            origin: position at which the pipelines began to share the order.
        """
        turn = self.shard_in(epoch)
        if self.is_contiguous:
            return (turn + 1) * size // self.number - turn * size // self.number
        return max(0, -(-(size - origin - turn) // self.number))

    def positions(self, size: int | None, epoch: int, origin: int, local: Ints) -> Ints:
        """Return the positions in the epoch's order of this pipeline's rows ``local``.

        Args:
            size: positions in an epoch; None if endless.
            epoch: number of the epoch.
            origin: position at which the pipelines began to share the order.
            local: row numbers of this pipeline, counted from ``origin``.
        """
        if size is None:
            return origin + local * self.number + self.id
        turn = self.shard_in(epoch)
        if not self.is_contiguous:
            if self.is_padded:  # with the last position of this part, or of the epoch if the part is empty
                last = (size - 1 - origin - turn) // self.number
                if last < 0:
                    return np.full_like(local, size - 1)
                local = np.minimum(local, last)
            return (origin + local * self.number + turn) % size
        low, high = turn * size // self.number, (turn + 1) * size // self.number
        return np.minimum(low + local, max(high - 1, 0)) if self.is_padded else (low + local) % size


class Sampler(ABC):
    """Order of an epoch, and the samples that it takes. Give one to a reader: ``fn.readers.file(..., sampler=...)``.

    Override :meth:`bind` in your own class. The ``repr`` is part of the pipeline's fingerprint, so it must name
    everything that decides the order.
    """

    @abstractmethod
    def bind(self, size: int, labels: npt.NDArray[np.int32] | None, shards: Shards, seed: int | None) -> BoundSampler:
        """Return the order over a data set.

        Args:
            size: number of samples in the data set.
            labels: their labels, int32 ``(size,)``, or None.
            shards: division of epochs into shards.
            seed: the reader's own seed; None: the seed passed to ``indices``, which is the pipeline's.

        Raises:
            ArgumentError: the sampler does not fit this data set.

        Returns:
            An object with ``size`` (positions in an epoch; None: endless), ``indices(seed, epoch, positions)`` (the
            samples at these positions), ``keys(epoch, positions, indices)`` (uint64 row keys, which decide the rows'
            random numbers) and ``forward_only`` (None, or the reason why the order has no random access).
        """


@dataclass(frozen=True)
class SourcePart:
    """Source inside another source: its operator and the constants of its call."""

    operator: Any  # a class of Operator
    args: Mapping[str, Any]


@dataclass(frozen=True)
class OpenSource:
    """Opened data set.

    Attributes:
        sampler: order of the samples.
        columns: one per output of the reader.
        fingerprint: digest that changes with the data set (names, order, labels).
        shards: part of every epoch that this pipeline takes.
        order: short description of the sampler, for messages about states that do not fit.
        notes: remarks about the data set, for a warning when the pipeline is built.
    """

    sampler: BoundSampler
    columns: tuple[Column, ...] = ()
    fingerprint: str = ""
    shards: Shards = Shards()
    order: str = ""
    notes: tuple[str, ...] = ()

    @property
    def samples(self) -> int:
        """Return the number of samples in the data set, whether the sampler takes them or not."""
        return len(self.columns[0]) if self.columns else int(self.sampler.size or 0)

    def storages(self, outputs: Iterable[int] | None = None) -> tuple[Storage, ...]:
        """Return the storages of all columns, or of the given outputs."""
        columns = self.columns if outputs is None else [self.columns[o] for o in sorted(outputs)]
        return tuple(c.storage for c in columns if c.storage is not None)

    def storage(self, output: int | None = None) -> Storage | None:
        """Return the storage of an output, or the first storage; None if there is none."""
        own = self.columns[output].storage if output is not None and output < len(self.columns) else None
        return own or next(iter(self.storages()), None)

    def locate(self, index: int, output: int | None = None) -> RecordLocation:
        """Return the location of sample ``index``, or of its record for one output."""
        storage = self.storage(output)
        # The index may be out of range: a user's sampler can return any number.
        return storage.locate(index) if storage is not None and 0 <= index < len(storage) else RecordLocation()

    def describe(self, index: int) -> str:
        """Return the location of sample ``index`` as text for messages."""
        return str(self.locate(index)) or "no sample"

    def cancel(self) -> None:
        """End all waiting for bytes (see :meth:`Storage.cancel`)."""
        for storage in self.storages():
            storage.cancel()

    def close(self) -> None:
        """Close all storages. Called when no row is in flight."""
        for storage in self.storages():
            storage.close()


class Source(Operator, ABC):
    """Base class of operators that bring data into a graph."""

    is_source = True
    inputs = (0, 0)
    #: Whether the argument `origin` adds a last output, the location of each row's sample.
    gives_origin: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def open(cls, args: Mapping[str, Any]) -> OpenSource | Feeder:
        """Open the source when a pipeline is built, without reading data.

        Args:
            args: the constant arguments by name, with defaults.

        Raises:
            ArgumentError: the arguments do not fit the data.
            OSError: the operating system fails.
        """


class Reader(Source, ABC):
    """Base class of readers: a sampler, and a data set of columns over storages.

    A subclass defines the data set (:meth:`dataset`) and the order of an epoch (:meth:`ordering`, :meth:`shards`).
    Reading, states and bad samples work without further code. ``stoker.readers.SampledReader`` has the usual arguments
    for order and shards.
    """

    devices = ("cpu",)

    @classmethod
    @abstractmethod
    def dataset(cls, args: Mapping[str, Any]) -> DataSet:
        """Find the samples: list files, read indices. The columns are the outputs, in order.

        Args:
            args: the constant arguments by name, with defaults.

        Raises:
            ArgumentError: there are no samples, or an index file is wrong. The message names path and line (or byte).
            OSError: the operating system fails.
        """

    @classmethod
    @abstractmethod
    def ordering(cls, args: Mapping[str, Any]) -> Sampler:
        """Return the sampler that decides the order of an epoch.

        Args:
            args: the constant arguments by name, with defaults.
        """

    @classmethod
    def shards(cls, args: Mapping[str, Any]) -> Shards:
        """Return the part of every epoch that this pipeline takes; all of it by default.

        Args:
            args: the constant arguments by name, with defaults.
        """
        return Shards()

    @classmethod
    def order_seed(cls, args: Mapping[str, Any]) -> int | None:
        """Return the seed of the order; None (the default) for the pipeline's seed.

        Args:
            args: the constant arguments by name, with defaults.
        """
        return None

    @classmethod
    def open(cls, args: Mapping[str, Any]) -> OpenSource:
        """Open the data set. Raises the same errors as :meth:`dataset`.

        Args:
            args: the constant arguments by name, with defaults.
        """
        shards, data, sampler = cls.shards(args), cls.dataset(args), cls.ordering(args)
        order = sampler.bind(len(data), data.labels, shards, cls.order_seed(args))
        return OpenSource(order, data.columns, data.fingerprint, shards, repr(sampler), data.notes)

    def lower(self, c: Lowering) -> tuple[Value, ...]:
        """Read the columns.

        Args:
            c: the builder of steps.
        """
        return lower_columns(c)


def lower_columns(c: Lowering) -> tuple[Value, ...]:
    """Build the steps that read the columns of the node's data set and return one value per column."""
    reader = c.reader()
    return tuple(column.lower(c, reader) for column in c.source.columns)
