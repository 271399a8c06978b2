# SPDX-License-Identifier: Apache-2.0
"""Batches between request and delivery, and the position of the stream after each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..contract.batch import Batch
from ..graph.plan import PlannedOutput
from .flight import Feeds, InFlight
from .schedule import Rows


@dataclass(slots=True)  # created for every batch; freezing would triple the cost
class Mark:
    """Position of the stream after a batch. :meth:`~stoker.executor.execution.Execution.get_state` serializes it."""

    epoch: int
    position: int
    consumed: int  # total of all shards
    sources: tuple[Any, ...] = ()
    states: Mapping[int, Any] = field(default_factory=dict)
    bad: tuple[int, int] = (0, 0)  # epoch, and count of its rows that were replaced or skipped
    listed: int = 0  # bad samples that were listed up to this position


@dataclass(slots=True)
class Delivered:
    """Delivered batch: an array, list of arrays or supplied tensor per output, and the position of the stream after it.

    ``asked`` is the number of rows including those that were left out, whose positions are in ``skipped``.
    """

    outputs: list[Any]
    rows: Rows
    mark: Mark
    asked: int = 0
    skipped: tuple[int, ...] = ()

    def batches(self, planned: Sequence[PlannedOutput]) -> tuple[Batch, ...]:
        """Return a :class:`~stoker.contract.batch.Batch` per output. The plan supplies types, axes and devices."""
        keys, epochs, skipped = self.rows.keys, self.rows.epochs, self.skipped
        return tuple(
            [  # a list costs less than a generator
                Batch(data, p.dtype, p.layout, keys, epochs, "gpu" if p.on_gpu else "cpu", skipped)
                for data, p in zip(self.outputs, planned, strict=True)
            ]
        )


@dataclass(slots=True)
class Taken:
    """Batch, error or end (neither) that was taken ahead of its delivery, and the position of the stream after it.

    ``course`` is the number of changes of the position before it: after another change it is not delivered.
    """

    delivered: Delivered | None
    error: BaseException | None
    mark: Mark
    course: int


@dataclass(slots=True)
class Queued:
    """Batch in flight, or the error that takes its place in the queue. ``mark`` is the position after it."""

    mark: Mark
    rows: Rows | None = None
    flight: InFlight | None = None
    feeds: Feeds | None = None
    error: BaseException | None = None
