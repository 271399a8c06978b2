# SPDX-License-Identifier: Apache-2.0
"""Random graphs that run. A number determines the graph, and its reference results come with it.

A graph grows by *moves*: small pieces of user code such as "crop one of the existing images". After every move the
references evaluate the new nodes, so that the next move knows the existing shapes and values. A move that the operators
refuse is taken back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..executor.schedule import Rows
from ..graph.node import Graph
from .graph_grower import GraphGrower, Move, source
from .moves import MOVES
from .reference import Column, Interpreter


@dataclass(repr=False)
class RandomGraph:
    """Random graph with the results of its references.

    Attributes:
        seed: seed of the draws.
        number: the number that determines the graph.
        rows: keys, epochs and indices of the rows in ``columns``.
        columns: for each output, an array per row.
        interpreter: holds the arrays of all other nodes.
        refused: moves that were taken back, with the reason.
        failing: graphs that must fail because a reference refused their data, with the row.
    """

    number: tuple[int, ...]
    seed: int
    graph: Graph
    rows: Rows
    columns: list[Column]
    interpreter: Interpreter
    refused: list[str] = field(default_factory=list)
    failing: list[tuple[Graph, int]] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"random_graph({', '.join(map(str, self.number))})"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # otherwise IPython and Hypothesis print all fields


@contextmanager
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def random_graph(*number: int, files: Sequence[str] = (), moves: Sequence[tuple[float, Move]] = MOVES) -> RandomGraph:
    """Return the graph that ``number`` determines.

    Args:
        number: any integers; the same ones give the same graph.
        files: small image files, for graphs with a reader.
        moves: (weight, move); by default all of :mod:`stoker.testing.moves`.
    """
    rng = np.random.default_rng(number)
    garden = GraphGrower(rng, files)
    weights = np.asarray([w for w, _ in moves])
    with _quiet():
        while not garden.grow(source):
            pass
        wanted = int(rng.integers(2, 11))
        for _ in range(3 * wanted):
            move = moves[int(rng.choice(len(moves), p=weights / weights.sum()))][1]
            wanted -= garden.grow(move)
            if wanted <= 0:
                break
    outputs = [garden.array() for _ in range(int(rng.integers(1, 4)))]
    outputs += garden.labels  # an unused reader would not be opened, which would change the rows
    graph = garden.builder.graph(outputs)
    columns = [garden.interpreter.column(e) for e in graph.outputs]
    return RandomGraph(
        number, garden.seed, graph, garden.rows, columns, garden.interpreter, garden.refused, garden.failing
    )
