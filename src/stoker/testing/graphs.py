# SPDX-License-Identifier: Apache-2.0
"""Random graphs that run: a number decides the graph, and its reference results come with it.

A graph grows by *moves*: small pieces of user code such as "crop one of the images there are". After every move the
new nodes are lowered and evaluated by their references, so that the next move knows what shapes and values there are,
and a move that the operators refuse is taken back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..executor.schedule import Rows
from ..graph.node import Graph
from .garden import Garden, Move, source
from .moves import MOVES
from .reference import Column, Interpreter


@dataclass(repr=False)
class RandomGraph:
    """A graph and what its references give.

    Attributes:
        seed: of the draws.
        number: what the graph was grown from.
        rows: keys, epochs and indices of the rows in ``columns``.
        columns: per output, an array per row.
        interpreter: holds the arrays of all other nodes.
        refused: the moves that were taken back, with the reason.
        failing: graphs that fail, because of what a reference refused, and at which row.
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
        printer.text(repr(self))  # IPython and Hypothesis would write out all fields


@contextmanager
def _quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def random_graph(*number: int, files: Sequence[str] = (), moves: Sequence[tuple[float, Move]] = MOVES) -> RandomGraph:
    """The graph that ``number`` stands for.

    Args:
        number: any integers; the same ones give the same graph.
        files: small image files, for graphs with a reader.
        moves: (weight, move); by default all of :mod:`stoker.testing.moves`.
    """
    rng = np.random.default_rng(number)
    garden = Garden(rng, files)
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
    outputs += garden.labels  # a reader that nothing needs would not be opened, and the rows would be others
    graph = garden.builder.graph(outputs)
    columns = [garden.interpreter.column(e) for e in graph.outputs]
    return RandomGraph(
        number, garden.seed, graph, garden.rows, columns, garden.interpreter, garden.refused, garden.failing
    )
