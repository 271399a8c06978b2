# SPDX-License-Identifier: Apache-2.0
"""Running a graph by its operators' references: plain NumPy, row by row, node by node. Slow, and what all else must equal.

Lowering tells which operators a composite consists of and which axes a value has, so the interpreter is a lowering that
also evaluates: whenever an operator has been lowered, its reference runs on the arrays that its inputs have so far.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.errors import UnsupportedError
from ..contract.lowering import Lowering, Scope
from ..contract.operator import Operator, RowContext
from ..contract.random import Stream
from ..contract.step import Value
from ..executor.schedule import Rows
from ..frontends.registry import find as find_public
from ..graph.node import Edge, Graph, Node
from .tolerances import assert_exact

Column = list[Any]  # one array per row; None where the node does not run
Feeds = Mapping[tuple[int, int], Sequence[Any]]  # (node, output) -> an array per row


def plain_rows(count: int, first: int = 0, epoch: int = 0) -> Rows:
    """The rows of a pipeline without a reader: their keys count up."""
    keys = np.arange(first, first + count, dtype=np.uint64)
    return Rows(keys, np.full(count, epoch, np.int64), (), epoch, first + count)


class Interpreter(Lowering):
    """Evaluates nodes as they are added.

    Args:
        rows: whose keys and epochs decide the draws.
        seed: the pipeline's.
        feeds: arrays for the nodes that have no reference, which are the sources of data.
        sources: opened readers by node.
        find: operators by name.
    """

    def __init__(
        self,
        rows: Rows,
        seed: int,
        feeds: Feeds | None = None,
        sources: Mapping[int, Any] | None = None,
        find: Callable[[str], type[Operator]] = find_public,
    ) -> None:
        super().__init__(find, {}, sources or {})
        self.rows = rows
        self.seed = seed
        self.made: dict[Edge, Value] = {}
        self._feeds = feeds or {}
        self._columns: dict[int, Column] = {}

    def add(self, node: Node) -> tuple[Value, ...]:
        """Lower and evaluate the next node of a graph; what it makes.

        Raises:
            ArgumentError, UnsupportedError: the operator refuses its arguments.
            Exception: what the reference raises for a row.
        """
        edges = {name: self.made[e] for name, e in node.edges}
        guards = tuple((self.made[e].id, wanted) for e, wanted in node.guards)
        scope = Scope(node.operator(), node.args, edges, node.id, node.draw, guards)
        values = self.lower(scope, [self.made[e] for e in node.inputs])
        self.made.update({Edge(node.id, i): value for i, value in enumerate(values)})
        return values

    def column(self, edge: Edge) -> Column:
        """The arrays of a node's output."""
        return self._columns[self.made[edge].id]

    def lower(self, scope: Scope, inputs: Sequence[Value]) -> tuple[Value, ...]:
        outputs = super().lower(scope, inputs)
        if not scope.operator.is_composite():
            for value, column in zip(outputs, self._evaluate(scope, inputs, len(outputs)), strict=True):
                self._keep(scope, value, column)
        return outputs

    def _keep(self, scope: Scope, value: Value, column: Column) -> None:
        known = self._columns.setdefault(value.id, column)
        if known is column:
            return
        # The operator gave its input back: the reference must have done so as well.
        for old, new in zip(known, column, strict=True):
            if new is not None:
                assert_exact(new, old, f"`{scope.operator.name}`, which changes nothing")

    def _evaluate(self, scope: Scope, inputs: Sequence[Value], outputs: int) -> list[Column]:
        operator = scope.operator
        if operator.kind == "source":
            return [list(self._feeds[scope.node, i]) for i in range(outputs)]
        if operator.stateful:
            raise UnsupportedError(f"`{operator.name}`: what it gives depends on the rows before, not on the row")
        active = [r for r in range(len(self.rows)) if self._runs(scope, r)]
        contexts = [self._context(scope, inputs, r) for r in active]
        arrays = [tuple(self._array(scope, x, r) for x in inputs) for r in active]
        if operator.scope == "batch":
            results = operator.run_rows(contexts, arrays)
        else:
            results = [operator.reference(c, *x) for c, x in zip(contexts, arrays, strict=True)]
        columns: list[Column] = [[None] * len(self.rows) for _ in range(outputs)]
        for r, result in zip(active, results, strict=True):
            made = result if isinstance(result, (tuple, list)) else (result,)
            for column, x in zip(columns, made, strict=True):
                column[r] = np.asarray(x)
        return columns

    def _runs(self, scope: Scope, row: int) -> bool:
        conditions = ((self._columns[v][row], wanted) for v, wanted in scope.guards)
        return all(x is not None and bool(x) == wanted for x, wanted in conditions)

    def _context(self, scope: Scope, inputs: Sequence[Value], row: int) -> RowContext:
        edges = {name: self._array(scope, value, row) for name, value in scope.edges.items()}
        stream = None
        if scope.operator.draws:
            own = scope.args.get("seed")
            seed = self.seed if own is None or own < 0 else own
            stream = Stream(seed, int(self.rows.epochs[row]), int(self.rows.keys[row]), scope.draw)
        return RowContext({**scope.args, **edges}, layouts=tuple(x.layout for x in inputs), stream=stream)

    def _array(self, scope: Scope, value: Value, row: int) -> npt.NDArray[Any] | None:
        column = self._columns.get(value.id)
        if column is None:
            raise UnsupportedError(
                f"`{scope.operator.name}` gets a value that no operator made: a `compose` must call `c.apply` for all that "
                "it does, else the operator needs `lower` and `reference`"
            )
        return column[row]  # type: ignore[no-any-return]


def run_reference(
    graph: Graph,
    rows: Rows,
    seed: int,
    feeds: Feeds | None = None,
    sources: Mapping[int, Any] | None = None,
    find: Callable[[str], type[Operator]] = find_public,
) -> list[Column]:
    """What ``graph`` gives for ``rows``: per output, an array per row (see :class:`Interpreter` for the arguments)."""
    interpreter = Interpreter(rows, seed, feeds, sources, find)
    needed = graph.needed()
    for node in graph.nodes:
        if node.id in needed:
            interpreter.add(node)
    return [interpreter.column(e) for e in graph.outputs]
