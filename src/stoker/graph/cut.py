# SPDX-License-Identifier: Apache-2.0
"""Division of a graph into a part that other processes compute and a rest, where the fewest bytes pass."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..contract.operator import Operator
from .node import Edge, Graph, Node

_NO_LIMIT = 1 << 60  # bytes; a value that may not pass
_BEGIN, _END = "begin", "end"
_Point = tuple[Edge, bool] | str  # of the flow: the begin (False) or end (True) of a value, or one of the two ends


@dataclass(frozen=True, eq=False)
class Cut:
    """Division of a graph.

    Attributes:
        values: the values that pass from the first part to the rest, in the order of their nodes.
        first: the first part. Its outputs are these values.
        rest: the rest, with the graph's outputs. The nodes of these values are sources.
    """

    values: tuple[Edge, ...]
    first: Graph
    rest: Graph


def data_values(graph: Graph) -> list[Edge]:
    """Return the values that outputs need and that depend on a source. All others can be computed anywhere."""
    needed, found = graph.needed(), dict[Edge, None]()
    for node in graph.nodes:
        if node.id in needed and (node.operator.is_source or any(e in found for e in node.parents())):
            found.update((Edge(node.id, i), None) for i in range(node.outputs))
    return list(found)


def find_cut(graph: Graph, size_bytes: Mapping[Edge, int]) -> tuple[Edge, ...] | None:
    """Return the values, one on each way from a source to an output, that have the fewest bytes together.

    Of several such sets it is the one nearest to the outputs.

    Args:
        graph: the graph.
        size_bytes: bytes of a row of the values that may pass.

    Returns:
        The values; None if values that may not pass are on all of some way.
    """
    values = data_values(graph)
    flow = _Flow()
    known = set(values)
    for value in values:
        flow.add((value, False), (value, True), size_bytes.get(value, _NO_LIMIT))
        node = graph.nodes[value.node]
        if value.output:  # one process computes all outputs of a node
            flow.join((Edge(value.node), False), (value, False))
        if node.operator.is_source:
            flow.add(_BEGIN, (value, False), _NO_LIMIT)
        for parent in node.parents():
            if parent in known:
                flow.add((parent, True), (value, False), _NO_LIMIT)
    for output in known.intersection(graph.outputs):
        flow.add((output, True), _END, _NO_LIMIT)
    if flow.fill() >= _NO_LIMIT:
        return None
    after = flow.reaching_end()
    return tuple(v for v in values if (v, True) in after and (v, False) not in after)


def divide(
    graph: Graph, values: Sequence[Edge], source: Callable[[Node], tuple[type[Operator], Mapping[str, Any]]]
) -> Cut:
    """Divide a graph at ``values`` (see :func:`find_cut`).

    Args:
        graph: the graph.
        values: the values that pass.
        source: gives, for a node that makes some of them, the source that takes its place in the rest, with arguments.
    """
    first = Graph(graph.nodes[: max(v.node for v in values) + 1], tuple(values))
    nodes = list(graph.nodes)
    for number in {v.node for v in values}:
        operator, args = source(nodes[number])
        nodes[number] = replace(nodes[number], operator=operator, args=args, inputs=(), edges=(), guards=())
    return Cut(tuple(values), first, Graph(tuple(nodes), graph.outputs, graph.names, partial=True))


class _Flow:
    """Largest flow from one end to the other, by shortest paths (Edmonds and Karp). Graphs have few nodes."""

    def __init__(self) -> None:
        self._room: dict[_Point, dict[_Point, int]] = {}

    def add(self, a: _Point, b: _Point, room: int) -> None:
        """Add a pipe."""
        self._room.setdefault(a, {})[b] = room
        self._room.setdefault(b, {}).setdefault(a, 0)

    def join(self, a: _Point, b: _Point) -> None:
        """Keep two points on one side."""
        self.add(a, b, _NO_LIMIT)
        self.add(b, a, _NO_LIMIT)

    def fill(self) -> int:
        """Fill the pipes; return the flow, or a number of at least ``_NO_LIMIT`` if it has no limit."""
        total = 0
        while total < _NO_LIMIT and (path := self._path()):
            least = min(self._room[a][b] for a, b in path)
            for a, b in path:
                self._room[a][b] -= least
                self._room[b][a] += least
            total += least
        return total

    def _path(self) -> list[tuple[_Point, _Point]]:
        came: dict[_Point, _Point] = {}
        todo: deque[_Point] = deque([_BEGIN])
        while todo and _END not in came:
            at = todo.popleft()
            for to, room in self._room.get(at, {}).items():
                if room and to != _BEGIN and to not in came:
                    came[to] = at
                    todo.append(to)
        path: list[tuple[_Point, _Point]] = []
        at = _END
        while at in came:
            path.append((came[at], at))
            at = came[at]
        return path

    def reaching_end(self) -> set[_Point]:
        """Return the points from which more could flow to the end."""
        found: set[_Point] = {_END}
        todo: list[_Point] = [_END]
        while todo:
            at = todo.pop()
            for before in self._room.get(at, {}):
                if before not in found and self._room[before][at]:
                    found.add(before)
                    todo.append(before)
        return found
