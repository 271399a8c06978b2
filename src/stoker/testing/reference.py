# SPDX-License-Identifier: Apache-2.0
"""Interpreter that runs a graph by its operators' references: plain NumPy, row by row, node by node.

Every other way of running a graph must equal it. Lowering determines the operators of a composite and the axes of a
value, so the interpreter is a lowering that also evaluates: after an operator is lowered, its reference runs on the
arrays of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..codecs.open_codecs import OpenCodecs
from ..contract.argument import arg
from ..contract.errors import UnsupportedError
from ..contract.expr import is_static
from ..contract.lowering import Lowering, UndeclaredTypes
from ..contract.operator import Operator, RowContext, Spec
from ..contract.random import Stream
from ..contract.scope import Scope
from ..contract.step import Value
from ..executor.python_work import specs_of
from ..executor.run import Run
from ..executor.schedule import Rows
from ..frontends.registry import find as find_public
from ..graph.load import load
from ..graph.node import Edge, Graph, Node
from ..graph.planner import make_plan
from .tolerances import assert_close, assert_exact

Column = list[Any]  # one array per row; None where the node does not run
Feeds = Mapping[tuple[int, int], Sequence[Any]]  # (node, output) -> an array per row


def plain_rows(count: int, first: int = 0, epoch: int = 0) -> Rows:
    """Return the rows of a pipeline without a reader, whose keys count up."""
    keys = np.arange(first, first + count, dtype=np.uint64)
    return Rows(keys, np.full(count, epoch, np.int64), (), epoch, first + count)


class Fed(Operator, name="testing.fed"):
    """Arrays that the caller of a law supplies."""

    inputs = (0, 0)
    is_source = True
    hidden = True
    spec = arg("object", doc="Type, shape (None: differs from row to row) and axes.")
    per_frame = arg("bool", False, doc="Whether there is one element per frame.")

    def lower(self, c: Lowering) -> Value:
        value = c.fed(c.const("spec"))
        return c.with_properties(value, per_frame=True) if c.const("per_frame") else value


class RowRefused(Exception):
    """A reference refuses the data of a row. A pipeline must refuse them too."""

    def __init__(self, node: int, row: int, error: Exception) -> None:
        super().__init__(f"node {node}, row {row}: {type(error).__name__}: {error}")
        self.node, self.row = node, row


class Interpreter(Lowering):
    """Lowering that also evaluates each node as it is added.

    For an operator that is not exact, the native result must be near the reference. The native result is then used, so
    that all later nodes can be compared exactly.

    Args:
        rows: rows whose keys and epochs decide the draws.
        seed: the pipeline's seed.
        feeds: arrays for nodes without a reference, which are the sources of data.
        sources: opened readers by node.
        find: function that returns an operator by name.
    """

    def __init__(
        self,
        rows: Rows,
        seed: int,
        feeds: Feeds | None = None,
        sources: Mapping[int, Any] | None = None,
        find: Callable[[str], type[Operator]] = find_public,
    ) -> None:
        self._discovered: dict[int, tuple[Spec, ...]] = {}
        super().__init__(find, self._discovered, sources or {})
        self.sources = dict(sources or {})
        self.rows = rows
        self.seed = seed
        self.values: dict[Edge, Value] = {}
        self._feeds = feeds or {}
        self._columns: dict[int, Column] = {}
        self._has_reference = False  # whether an operator with a reference is being lowered

    def add(self, node: Node) -> tuple[Value, ...]:
        """Lower and evaluate the next node of a graph, and return its outputs.

        Raises:
            ArgumentError, UnsupportedError: the operator refuses its arguments.
            Exception: the reference's error for a row.
        """
        edges = {name: self.values[e] for name, e in node.edges}
        guards = tuple((self.values[e].id, wanted) for e, wanted in node.guards)
        scope = Scope(node.operator(), node.args, edges, node.id, node.draw, guards)
        values = self.lower(scope, [self.values[e] for e in node.inputs])
        self.values.update({Edge(node.id, i): value for i, value in enumerate(values)})
        return values

    def column(self, edge: Edge) -> Column:
        """Return the arrays of a node's output."""
        return self._columns[self.values[edge].id]

    def lower(self, scope: Scope, inputs: Sequence[Value]) -> tuple[Value, ...]:
        # Operators that another one lowers in place of itself are part of that one's reference.
        is_part = self._has_reference
        self._has_reference = is_part or not scope.operator.is_composite()
        try:
            outputs = super().lower(scope, inputs)
        except UndeclaredTypes:  # types known only after a run, as in a pipeline's first batch
            self._discovered[scope.node] = self._specs(scope, inputs)
            outputs = super().lower(scope, inputs)
        finally:
            self._has_reference = is_part
        if not scope.operator.is_composite() and not is_part:
            for value, column in zip(outputs, self._evaluate(scope, inputs, len(outputs)), strict=True):
                self._keep(scope, value, column)
        return outputs

    def _specs(self, scope: Scope, inputs: Sequence[Value]) -> tuple[Spec, ...]:
        columns = self._evaluate(scope, inputs, scope.operator.count_outputs_with(scope.args, len(inputs)))
        row = next(r for r, x in enumerate(columns[0]) if x is not None)
        layouts = scope.args.get("output_layouts") or (scope.args.get("layout"),)
        return specs_of(tuple(column[row] for column in columns), [name or "" for name in layouts])

    def _keep(self, scope: Scope, value: Value, column: Column) -> None:
        for x in column:
            if x is not None:
                _assert_inferred(scope.operator.name, value, x)
        known = self._columns.setdefault(value.id, column)
        if known is column:
            return
        # The operator returned its input, so the reference must have done the same.
        for old, new in zip(known, column, strict=True):
            if new is not None:
                assert_exact(new, old, f"`{scope.operator.name}`, which changes nothing")

    def _evaluate(self, scope: Scope, inputs: Sequence[Value], outputs: int) -> list[Column]:
        operator = scope.operator
        if operator.is_source:
            return [list(self._feeds[scope.node, i]) for i in range(outputs)]
        if operator.stateful:
            raise UnsupportedError(f"`{operator.name}`: what it gives depends on the rows before, not on the row")
        active = [r for r in range(len(self.rows)) if self._runs(scope, r)]
        contexts = [self._context(scope, inputs, r) for r in active]
        arrays = [tuple(self._array(scope, x, r) for x in inputs) for r in active]
        if operator.scope == "batch" or (operator.is_python() and operator.runs_batches(scope.args)):
            results = operator.run_rows(contexts, arrays)
        else:
            results = []
            for r, context, x in zip(active, contexts, arrays, strict=True):
                try:
                    results.append(self._call(scope, inputs, context, x))
                except (ValueError, LookupError, ArithmeticError) as error:
                    raise RowRefused(scope.node, r, error) from error
        columns: list[Column] = [[None] * len(self.rows) for _ in range(outputs)]
        for r, result in zip(active, results, strict=True):
            values = result if isinstance(result, (tuple, list)) else (result,)
            for column, x in zip(columns, values, strict=True):
                column[r] = np.asarray(x)
        if operator.exactness != "exact" and active:
            self._take_native(scope, inputs, active, columns)
        return columns

    @staticmethod
    def _call(scope: Scope, inputs: Sequence[Value], context: RowContext, arrays: Sequence[Any]) -> Any:
        """Run the reference for one row, frame by frame if an argument differs from frame to frame."""
        framed = [name for name, value in scope.edges.items() if value.per_frame]
        if not framed:
            return scope.operator.reference(context, *arrays)
        videos = [x.layout[:1] == "F" or (not x.layout and x.rank == 4) for x in inputs]
        layouts = tuple(x.layout[1:] if video else x.layout for x, video in zip(inputs, videos, strict=True))
        frames = []
        for f in range(max(len(x) for x, video in zip(arrays, videos, strict=True) if video)):
            one = {**context.args, **{name: context.args[name][f] for name in framed}}
            data = [x[f] if video else x for x, video in zip(arrays, videos, strict=True)]
            frames.append(scope.operator.reference(RowContext(one, layouts=layouts), *data))
        return np.stack(frames)

    def _take_native(self, scope: Scope, inputs: Sequence[Value], active: list[int], columns: list[Column]) -> None:
        fed = [(x, [self._array(scope, x, r) for r in active]) for x in (*inputs, *scope.edges.values())]
        rows = Rows(self.rows.keys[active], self.rows.epochs[active], (), 0, len(active))
        largest = max((_largest(x) for _, column in fed for x in column if x is not None), default=0.0)
        for column, native in zip(
            columns, run_alone(scope, len(inputs), fed, rows, self.seed, self._find), strict=True
        ):
            for r, x in zip(active, native, strict=True):
                assert_near(x, column[r], largest, f"`{scope.operator.name}` alone, row {r}")
                column[r] = x

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
        layouts = tuple(x.layout for x in inputs)
        return RowContext({**scope.args, **edges}, layouts=layouts, stream=stream, batch_position=(row, len(self.rows)))

    def _array(self, scope: Scope, value: Value, row: int) -> npt.NDArray[Any] | None:
        column = self._columns.get(value.id)
        if column is None:
            raise UnsupportedError(
                f"`{scope.operator.name}` gets a value that no operator returned: a `compose` must call `c.apply` for "
                "all that it does, else the operator needs `lower` and `reference`"
            )
        return column[row]  # type: ignore[no-any-return]


def run_alone(
    scope: Scope,
    inputs: int,
    fed: Sequence[tuple[Value, Column]],
    rows: Rows,
    seed: int,
    find: Callable[[str], type[Operator]],
) -> list[Column]:
    """Return an operator's native results, run alone. ``fed``: its inputs, then its arguments in the scope's order."""
    nodes = []
    for i, (value, _) in enumerate(fed):
        shape = tuple(int(n) if is_static(n) else None for n in value.shape)
        spec = Spec(value.dtype, shape, value.layout)
        nodes.append(Node(i, Fed, Fed.fill_defaults({"spec": spec, "per_frame": value.per_frame}, {})))
    edges = tuple((name, Edge(inputs + i)) for i, name in enumerate(scope.edges))
    operator = type(scope.operator)
    count = scope.operator.count_outputs_with(scope.args, inputs)
    own = Node(
        len(nodes), operator, scope.args, tuple(Edge(i) for i in range(inputs)), edges, scope.draw, outputs=count
    )
    graph = Graph((*nodes, own), tuple(Edge(own.id, i) for i in range(count)))
    plan = make_plan(graph, find, passes=frozenset())
    run = Run(load(plan, codecs=OpenCodecs().get), graph, 1, seed, {})
    try:
        batch = run.run_inline(rows, {(i, 0): [np.asarray(x, order="C") for x in c] for i, (_, c) in enumerate(fed)})
        return [[np.array(x) for x in column] for column in batch]
    finally:
        run.close()


def _assert_inferred(name: str, value: Value, x: npt.NDArray[Any]) -> None:
    """Assert that the planned type of a value holds for the reference's result."""
    assert x.dtype == value.dtype.numpy, f"`{name}`: {value.dtype} is inferred, its reference gives {x.dtype}"
    fits = x.ndim == value.rank and all(not is_static(e) or e == n for e, n in zip(value.shape, x.shape, strict=True))
    assert fits, f"`{name}`: the shape {value.shape} is inferred, its reference gives {x.shape}"


def assert_near(got: npt.NDArray[Any], want: npt.NDArray[Any], largest: float, what: str) -> None:
    """Assert a difference of a few float32 roundings for inputs up to ``largest``; integers may be off by one."""
    unit = {"f": 1e-5, "b": 0.0}.get(got.dtype.kind, 0.0)
    if got.dtype == np.float16:
        unit = 2e-3
    bound = unit * (1 + largest + _largest(want)) if unit else float(got.dtype.kind in "iu")
    assert_close(got, want, atol=bound, bound=bound, what=what)


def _largest(x: npt.NDArray[Any]) -> float:
    """Return the largest finite magnitude."""
    wide = np.abs(x.astype(np.float64))
    return float(np.max(wide[np.isfinite(wide)], initial=0))


def run_reference(
    graph: Graph,
    rows: Rows,
    seed: int,
    feeds: Feeds | None = None,
    sources: Mapping[int, Any] | None = None,
    find: Callable[[str], type[Operator]] = find_public,
) -> list[Column]:
    """Return the outputs of ``graph`` for ``rows``: per output, an array per row (arguments: :class:`Interpreter`)."""
    interpreter = Interpreter(rows, seed, feeds, sources, find)
    needed = graph.needed()
    for node in graph.nodes:
        if node.id in needed:
            interpreter.add(node)
    return [interpreter.column(e) for e in graph.outputs]
