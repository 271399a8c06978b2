# SPDX-License-Identifier: Apache-2.0
"""Prefetching of records from asynchronous storages: requests go out when a batch's rows are known.

Further ahead, the order of later rows is computed, and storages with a cache load the bytes of these rows into it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from ..contract.reader import OpenSource
from ..contract.storage import Storage
from ..graph.node import Graph
from ..settings import remote_ahead_bytes
from .later_rows import LaterRows
from .schedule import Rows, Schedule


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
        self._later = LaterRows(schedule, batch_size)
        self._max_bytes = remote_ahead_bytes()
        self._window: deque[tuple[int, int]] = deque()  # row after a chunk, and the bytes that it has begun to load
        self._loading = 0  # bytes of the window

    def request(self, rows: Rows, batches: int) -> None:
        """Request the records that the rows of a batch will read.

        If more than ``batches`` batches are pending, the oldest requests expire.
        """
        for column, storage in self._storages:
            storage.request(rows.indices[column], batches)
        if self._storages and self._max_bytes:
            self._later.given += len(rows)
            self._look_ahead()

    def _look_ahead(self) -> None:
        """Load bytes of rows after the requested ones, up to the limit."""
        while self._window and self._window[0][0] <= self._later.given:
            self._loading -= self._window.popleft()[1]
        while self._loading < self._max_bytes and (rows := self._later.next()) is not None:
            begun = sum(storage.look_ahead(rows.indices[column]) for column, storage in self._storages)
            self._loading += begun
            self._window.append((self._later.end, begun))

    def drop(self) -> None:
        """Discard all requests: other rows come next."""
        self._later.forget()
        self._window.clear()
        self._loading = 0
        for _, storage in self._storages:
            storage.forget_look_ahead()
            storage.drop()
