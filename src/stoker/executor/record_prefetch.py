# SPDX-License-Identifier: Apache-2.0
"""Prefetching of records from asynchronous storages: requests go out when a batch's rows are known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..contract.reader import OpenSource
from ..contract.storage import Storage
from ..graph.node import Graph
from .schedule import Rows


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
    """Prefetcher of records from the asynchronous storages of a graph's readers, for the outputs that a node needs."""

    def __init__(self, graph: Graph, sources: Mapping[int, OpenSource]) -> None:
        self._storages = [(column, s) for column, s in used_storages(graph, sources) if s.asynchronous]

    def request(self, rows: Rows, batches: int) -> None:
        """Request the records that the rows of a batch will read.

        If more than ``batches`` batches are pending, the oldest requests expire.
        """
        for column, storage in self._storages:
            storage.request(rows.indices[column], batches)

    def drop(self) -> None:
        """Discard all requests: other rows come next."""
        for _, storage in self._storages:
            storage.drop()
