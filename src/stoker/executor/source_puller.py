# SPDX-License-Identifier: Apache-2.0
"""Inputs of the next batch: rows of the order, and the data of the caller's sources for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any

from ..contract.errors import DataError, StateError, message
from ..contract.feed import Feeder
from ..graph.node import Graph, Node
from .schedule import AtEnd, Rows, Schedule


class SourcePuller:
    """Reader of the next rows' data from all sources of a graph.

    Args:
        feeders: the caller's sources, by node.
        read: whether the graph has readers, whose order then decides the number of rows.

    Attributes:
        source_ns: time spent in the caller's sources, by node.
    """

    def __init__(self, graph: Graph, feeders: Mapping[int, Feeder], schedule: Schedule, read: bool) -> None:
        self.source_ns: dict[int, int] = {}
        self._graph = graph
        self._feeders = feeders
        self._schedule = schedule
        self._read = read

    def ready(self, *, wait: bool, closed: Callable[[], bool]) -> bool:
        """Return whether all sources have data, after waiting for them if ``wait``.

        Raises:
            StateError: the pipeline was closed during the wait.
        """
        for node, feeder in self._feeders.items():
            while not feeder.ready:
                if not wait:
                    return False
                if closed():
                    raise StateError("the pipeline was closed while a source waited for data")
                feeder.wait(self._graph.nodes[node].source_line)
        return True

    def next(self, count: int, at_end: AtEnd) -> tuple[Rows | None, dict[tuple[int, int], Any]]:
        """Return ``count`` rows (or the rest) and the data of each (source, output). At the end there are no rows."""
        rows = None
        if self._read:
            rows = self._schedule.next(count, at_end)
            if rows is None:
                return None, {}
            if not self._feeders:
                return rows, {}
            count = len(rows)
        feeds: dict[tuple[int, int], Any] = {}
        for node, data in self._pull_all(count).items():
            if data is None:
                return None, {}
            if rows is None and node == next(iter(self._feeders)):
                count = len(data[0])
            self._require_rows(node, data, count)
            feeds.update({(node, output): column for output, column in enumerate(data)})
        if rows is None:
            rows = self._schedule.next(count, "go_on")
        return rows, feeds

    def _require_rows(self, number: int, data: Sequence[Sized], count: int) -> None:
        wrong = next((len(column) for column in data if len(column) != count), None)
        if wrong is not None:
            node = self._graph.nodes[number]
            text = f"expected {count} rows as in the rest of the batch, got {wrong}"
            raise DataError(message(node.operator.name, text, source=node.source_line))

    def _pull_all(self, count: int) -> dict[int, Any]:
        """Pull a batch from every source; None for a source that has ended.

        If one source fails, the others are pulled all the same, so that their next batches belong together again.
        """
        pulled: dict[int, Any] = {}
        failed: Exception | None = None
        for node, feeder in self._feeders.items():
            began = time.perf_counter_ns()
            try:
                pulled[node] = feeder.pull(count, self._schedule.epoch)
            except StopIteration:
                pulled[node] = None
            except Exception as error:  # noqa: BLE001 - a user's source may raise anything
                failed = failed or _at_source(error, self._graph.nodes[node])
            self.source_ns[node] = self.source_ns.get(node, 0) + time.perf_counter_ns() - began
            first = pulled.get(node)
            if not self._read and first and len(pulled) == 1:
                count = len(first[0])
        if failed is not None:
            raise failed
        return pulled


def _at_source(error: Exception, node: Node) -> Exception:
    """Return a source's error extended by the line that created the source. The user's exceptions keep their type."""
    subject = node.operator.subject(node.args)
    if isinstance(error, DataError):
        placed = DataError(message(subject, str(error), source=node.source_line), row=error.row)
        placed.__cause__ = error.__cause__
        return placed
    error.add_note(f"in the source of `{subject}`" + (f", made at {node.source_line}" if node.source_line else ""))
    return error
