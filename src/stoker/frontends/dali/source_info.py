# SPDX-License-Identifier: Apache-2.0
"""Locations of the samples of delivered rows, for ``source_info()`` of DALI's tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...contract.reader import Source
from ...graph.node import Edge, Graph
from ...readers._origins import text_of

if TYPE_CHECKING:
    from ...executor.delivery import Delivered
    from ...executor.execution import Execution

SourceInfo = Callable[[int], str]


def unknown(row: int) -> str:
    """Return the location of a row that comes from no sample."""
    return ""


class SampleLocations:
    """Reader of each output's rows, if the output is computed from the files or records of one reader."""

    def __init__(self, execution: Execution) -> None:
        self._sources = execution.sources
        columns = list(self._sources)
        edges = [self._reader(output, execution.graph) for output in execution.graph.outputs]
        self._readers = [(edge, columns.index(edge.node)) if edge else None for edge in edges]

    def _reader(self, output: Edge, graph: Graph) -> Edge | None:
        """Return the reader's output that rows come from; None if they come from none, several, or other rows."""
        found: dict[int, Edge] = {}
        todo, seen = [output], {output}
        while todo:
            edge = todo.pop()
            node = graph.nodes[edge.node]
            if node.operator.scope == "batch":
                return None
            source = self._sources.get(edge.node) if issubclass(node.operator, Source) else None
            if source is not None and edge.output < len(source.columns) and source.columns[edge.output].storage:
                found.setdefault(edge.node, edge)
                continue
            fresh = [e for e in reversed(node.inputs) if e not in seen]
            seen |= set(fresh)
            todo += fresh
        return next(iter(found.values())) if len(found) == 1 else None

    def of(self, delivered: Delivered, output: int) -> SourceInfo:
        """Return the function of a row's number that returns the location of its sample; empty if there is none."""
        found = self._readers[output]
        if found is None:
            return unknown
        edge, column = found
        source, indices = self._sources[edge.node], delivered.rows.indices[column]
        return lambda row: text_of(source.locate(int(indices[row]), edge.output))
