# SPDX-License-Identifier: Apache-2.0
"""Prefetching of records from asynchronous storages: requests go out when a batch's rows are known.

Further ahead, the order of later rows is computed, and storages with a cache load the bytes of these rows into it.

While the last batches of an epoch are delivered, the records of the first batches of the next epoch are requested, so
that its loop does not begin with a wait. A loop over another epoch discards them.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator, Mapping

import numpy as np

from ..contract.reader import OpenSource
from ..contract.storage import Storage
from ..graph.node import Graph
from ..settings import remote_ahead_bytes
from .later_rows import LaterRows
from .schedule import AtEnd, Rows, Schedule


def used_storages(graph: Graph, sources: Mapping[int, OpenSource]) -> Iterator[tuple[int, Storage]]:
    """Yield (the reader's column in ``Rows.indices``, storage) for the outputs of readers that a node needs.

    Columns may share a storage, which comes once.
    """
    needed = graph.needed()
    edges = [*graph.outputs, *(e for n in graph.nodes if n.id in needed for e in n.parents())]
    for column, (node, source) in enumerate(sources.items()):
        used = {e.output for e in edges if e.node == node}
        for storage in dict.fromkeys(source.storages(used)):
            yield column, storage


class RecordPrefetcher:
    """Prefetcher of records from the asynchronous storages of a graph's readers, for the outputs that a node needs.

    All methods run on the thread that requests batches. Results never depend on the look-ahead.
    """

    def __init__(self, graph: Graph, sources: Mapping[int, OpenSource], schedule: Schedule, batch_size: int) -> None:
        self._storages = [(column, s) for column, s in used_storages(graph, sources) if s.asynchronous]
        # Without a cache the order of later rows has no use. Thousands of rows of a short epoch take milliseconds.
        self._caching = [(column, s) for column, s in self._storages if s.looks_ahead]
        self._schedule, self._batch_size = schedule, batch_size
        self._next_epoch: _FirstBatches | None = None
        self._later = LaterRows(schedule, batch_size)
        self._max_bytes = remote_ahead_bytes()
        self._window: deque[tuple[int, int]] = deque()  # row after a chunk, and the bytes that it has begun to load
        self._loading = 0  # bytes of the window

    def request(self, rows: Rows, batches: int) -> None:
        """Request the records that the rows of a batch will read.

        If more than ``batches`` batches are pending, the oldest requests expire.
        """
        if self._next_epoch is not None and not self._next_epoch.take(rows):
            self._next_epoch = None
        if self._next_epoch is None:
            self._request(rows, batches)
        if self._caching and self._max_bytes:
            self._later.given += len(rows)
            self._look_ahead()

    def request_next_epoch(self, count: int, batches: int, at_end: AtEnd) -> None:
        """Request the records of the first ``count`` batches of the next epoch, if the order is known without the
        user's code.

        Args:
            count: number of batches, with those that were requested before.
            batches: as of :meth:`request`.
            at_end: how the last batch of an epoch is made.
        """
        schedule = self._schedule
        if not self._storages or not schedule.is_pure or schedule.stride != 1:
            return
        if self._next_epoch is None or self._next_epoch.epoch != schedule.epoch + 1:
            self._next_epoch = _FirstBatches(schedule)
        try:
            while len(self._next_epoch.batches) < count:
                rows = self._next_epoch.later(self._batch_size, at_end)
                if rows is None:
                    return
                self._request(rows, batches)
        except Exception:  # noqa: BLE001 - the batch meets it again, if it is asked for
            self._next_epoch = None

    def _request(self, rows: Rows, batches: int) -> None:
        for column, storage in self._storages:
            storage.request(rows.indices[column], batches)

    def _look_ahead(self) -> None:
        """Load bytes of rows after the requested ones, up to the limit."""
        while self._window and self._window[0][0] <= self._later.given:
            self._loading -= self._window.popleft()[1]
        while self._loading < self._max_bytes and (rows := self._later.next()) is not None:
            begun = sum(storage.look_ahead(rows.indices[column]) for column, storage in self._caching)
            self._loading += begun
            self._window.append((self._later.end, begun))

    def drop(self, epoch: int | None = None) -> None:
        """Discard all requests: other rows come next.

        Args:
            epoch: keep the requests for the first batches of this epoch, which comes next.
        """
        self._later.forget()
        self._window.clear()
        self._loading = 0
        keeps = epoch is not None and self._next_epoch is not None and self._next_epoch.epoch == epoch
        if not keeps:
            self._next_epoch = None
        for _, storage in self._storages:
            storage.forget_look_ahead()
            if not keeps:
                storage.drop()


class _FirstBatches:
    """First batches of the epoch after a schedule's present one, whose records are requested.

    Attributes:
        epoch: number of the epoch.
        batches: rows of those that the run has not asked for yet.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._cursor = copy.copy(schedule)
        self._cursor.start_epoch(schedule.epoch + 1)
        self.epoch = self._cursor.epoch
        self.batches: deque[Rows] = deque()

    def later(self, count: int, at_end: AtEnd) -> Rows | None:
        """Return the rows of one more batch."""
        rows = self._cursor.next(count, at_end)
        if rows is not None:
            self.batches.append(rows)
        return rows

    def take(self, rows: Rows) -> bool:
        """Remove the first batch. Return whether it reads the same records as ``rows``."""
        if not self.batches:
            return False
        first = self.batches.popleft()
        return all(np.array_equal(a, b) for a, b in zip(first.indices, rows.indices, strict=True))
