# SPDX-License-Identifier: Apache-2.0
"""What the next batch is made of: rows of the order, and what the caller's sources give for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any

from ..contract.errors import DataError, StateError, message
from ..graph.node import Graph, Node
from .schedule import AtEnd, Rows, Schedule


class Pulling:
    """Asks all sources of a graph for the same rows.

    Args:
        feeders: what gives data for each source of the caller's, by node.
        read: whether the graph has readers, whose order then says how many rows there are.

    Attributes:
        source_ns: time in the caller's sources, by node.
    """

    def __init__(self, graph: Graph, feeders: Mapping[int, Any], schedule: Schedule, read: bool) -> None:
        self.source_ns: dict[int, int] = {}
        self._graph = graph
        self._feeders = feeders
        self._schedule = schedule
        self._read = read

    def ready(self, *, wait: bool, closed: Callable[[], bool]) -> bool:
        """Whether all sources have data, or will have after waiting for them.

        Raises:
            StateError: the pipeline was closed meanwhile.
        """
        for node, feeder in self._feeders.items():
            while not feeder.ready:
                if not wait:
                    return False
                if closed():
                    raise StateError("the pipeline was closed while a source waited for data")
                feeder.wait(self._graph.nodes[node].source)
        return True

    def next(self, count: int, at_end: AtEnd) -> tuple[Rows | None, dict[tuple[int, int], Any]]:
        """``count`` rows, or what is left, and the data of each (source, output); no rows at the end."""
        rows = None
        if self._read:
            rows = self._schedule.next(count, at_end)
            if rows is None:
                return None, {}
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
            raise DataError(message(node.operator.name, text, source=node.source))

    def _pull_all(self, count: int) -> dict[int, Any]:
        """A batch from every source; None from one that has ended.

        All are asked also if one fails, so that what they give next belongs together again.
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
    """A source's error with the line that made the source; what the user's code raised keeps its type."""
    subject = node.operator.subject(node.args)
    if isinstance(error, DataError):
        placed = DataError(message(subject, str(error), source=node.source), row=error.row)
        placed.__cause__ = error.__cause__
        return placed
    error.add_note(f"in the source of `{subject}`" + (f", made at {node.source}" if node.source else ""))
    return error
