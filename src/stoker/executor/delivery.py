# SPDX-License-Identifier: Apache-2.0
"""Batches between being asked for and being delivered, and where the stream stands after each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..contract.batch import Batch
from ..graph.plan import PlannedOutput
from .flight import Feeds, InFlight
from .schedule import Rows


@dataclass(slots=True)  # made for every batch: freezing would triple its cost
class Mark:
    """Where the stream stands after a batch; :meth:`~stoker.executor.execution.Execution.get_state` writes it out."""

    epoch: int
    position: int
    consumed: int  # by all shards together
    sources: tuple[Any, ...] = ()
    states: Mapping[int, Any] = field(default_factory=dict)
    bad: tuple[int, int] = (0, 0)  # epoch, and how many rows of it were replaced or left out


@dataclass(slots=True)
class Delivered:
    """One batch: an array, list of arrays or supplied tensor per output, and where the stream stands after it.

    ``asked`` is how many rows it would have without those left out, whose numbers then are ``skipped``.
    """

    outputs: list[Any]
    rows: Rows
    mark: Mark
    asked: int = 0
    skipped: tuple[int, ...] = ()

    def batches(self, planned: Sequence[PlannedOutput]) -> tuple[Batch, ...]:
        """One per output; the plan tells their types, axes and places."""
        rows = self.rows
        return tuple(
            Batch(data, p.dtype, p.layout, rows.keys, rows.epochs, "gpu" if p.on_gpu else "cpu", self.skipped)
            for data, p in zip(self.outputs, planned, strict=True)
        )


@dataclass(slots=True)
class Queued:
    """A batch under way, or the error that stands in its place; ``mark`` is the state after it."""

    mark: Mark
    rows: Rows | None = None
    flight: InFlight | None = None
    feeds: Feeds | None = None
    error: BaseException | None = None
