# SPDX-License-Identifier: Apache-2.0
"""Laws that every operator and every graph obeys. The functions raise AssertionError if a law is broken.

check_operator(MyOp)      one operator, over its cases: reference, types, passes, threads, eager, arguments per row
check_graph(graph, want)  one graph: the same bytes in every way of running it
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..codecs.open_codecs import OpenCodecs
from ..contract.batch import Batch
from ..contract.config import PipelineConfig
from ..contract.errors import ArgumentError, DataError, UnsupportedError
from ..contract.operator import Operator, Spec
from ..contract.step import Value
from ..contract.types import DType
from ..executor.execution import Execution
from ..executor.run import OpenGpu, Run
from ..executor.schedule import Rows
from ..frontends import eager
from ..frontends.constants import Constant
from ..frontends.data_node import DataNode
from ..frontends.definition import GraphBuilder
from ..frontends.registry import find as find_public
from ..graph.analysis import PASSES
from ..graph.load import load
from ..graph.node import Edge, Graph, Node
from ..graph.plan import PlannedOutput
from ..graph.planner import make_plan
from .reference import Column, Fed, Feeds, Interpreter, run_reference
from .tolerances import assert_exact, assert_rows

Find = Callable[[str], type[Operator]]
ALL_PASSES = frozenset(PASSES)


# ---- graphs ----


def run_graph(
    graph: Graph, config: PipelineConfig, count: int, find: Find = find_public, gpu: OpenGpu | None = None
) -> list[Column]:
    """Return the first ``count`` rows that a pipeline with ``config`` delivers for a graph, per output and row."""
    execution = Execution(graph, find, config, gpu)
    columns: list[Column] = [[] for _ in graph.outputs]
    try:
        while len(columns[0]) < count:
            delivered = execution.next("go_on")
            assert delivered is not None, "the data ended"
            for column, batch in zip(columns, execution.batches(delivered), strict=True):
                column += [np.array(x) for x in batch.as_cpu()]
    finally:
        execution.close()
    return [column[:count] for column in columns]


def check_graph(
    graph: Graph,
    want: Sequence[Column],
    seed: int,
    *,
    configs: Sequence[PipelineConfig],
    find: Find = find_public,
) -> None:
    """Check that a graph gives ``want``, and the same bytes with all ``configs``.

    Args:
        graph: the graph.
        want: for each output, an array per row: the results of the operators' references.
        seed: the pipeline's seed.
        configs: configurations to run; their batch sizes must divide the number of rows.
        find: function that returns an operator by name.
    """
    count = len(want[0])
    alone = PipelineConfig(batch_size=count, threads=1, seed=seed, depth=0, passes=frozenset(), without_gpu="cpu")
    plain = run_graph(graph, alone, count, find)
    for o, (got, expected) in enumerate(zip(plain, want, strict=True)):
        assert_rows(got, expected, f"output {o} against the references")
    for config in configs:
        for o, (got, expected) in enumerate(zip(run_graph(graph, config, count, find), plain, strict=True)):
            assert_rows(got, expected, f"output {o} with {config}", nan_bits=True)


def on_gpu(graph: Graph, rng: np.random.Generator) -> Graph:
    """Return the graph with some of its nodes, and all nodes that depend on these, placed on a GPU."""
    share = rng.uniform(0.1, 0.9)
    nodes = []
    for node in graph.nodes:
        able = not node.operator.is_source and not node.operator.is_python() and bool(node.inputs)
        chosen = able and rng.random() < share
        nodes.append(replace(node, args={**node.args, "device": "gpu"}) if chosen else node)
    return Graph(tuple(nodes), graph.outputs, graph.names)


def check_failure(graph: Graph, row: int, count: int, seed: int, find: Find = find_public) -> None:
    """Check that a graph fails at ``row`` of ``count``, or is refused earlier, with one message for all passes.

    Passes that move work (a window into a decoder, an interpolation past other steps) may change which of several
    errors of a row comes first. Each must be one that the row has without passes, in a graph that ends with its node.
    """
    plain, fast = (
        _failure(graph, PipelineConfig(batch_size=count, threads=threads, seed=seed, depth=depth, passes=passes), find)
        for threads, depth, passes in ((1, 0, frozenset[str]()), (2, 1, ALL_PASSES))
    )
    for failed in (plain, fast):
        assert failed is not None, f"row {row} fails by its reference, but not as the graph runs"
        assert failed[0] in (row, None), f"row {row} fails by its reference, the pipeline says: {failed[1]}"
    if plain != fast:
        alone = PipelineConfig(batch_size=count, threads=1, seed=seed, depth=0, passes=frozenset())
        known = {_failure(_ending_with(graph, node), alone, find) for node in graph.nodes}
        assert fast in known, f"without passes: {plain}, with all: {fast}, which is no error of the row: {known}"


def _failure(graph: Graph, config: PipelineConfig, find: Find) -> tuple[int | None, str] | None:
    """Return the row and the message of the error that a graph's first batch raises; None if it raises none.

    A graph that is refused when it is built, as for nodes inside a composite, has no row.
    """
    try:
        run_graph(graph, config, config.batch_size, find)
    except DataError as error:
        return error.row, str(error)
    except (ArgumentError, UnsupportedError) as error:
        return None, str(error)
    return None


def _ending_with(graph: Graph, node: Node) -> Graph:
    """Return the graph with the outputs of ``node`` as its only ones."""
    outputs = tuple(Edge(node.id, i) for i in range(node.outputs))
    return Graph(graph.nodes[: node.id + 1], outputs, (None,) * len(outputs))


def vary(rng: np.random.Generator, seed: int, count: int, *, whole_batches: bool = False) -> Iterator[PipelineConfig]:
    """Return configurations: all passes, none, and two single passes, on threads, in batches and queues of any size.

    Args:
        rng: random generator of the choices.
        seed: the pipeline's seed.
        count: number of rows that are compared; batch sizes divide it.
        whole_batches: one batch of all rows, for graphs whose rows depend on each other.
    """
    sizes = [count] if whole_batches else [n for n in range(1, count + 1) if count % n == 0]
    alone = [str(name) for name in rng.choice(PASSES, 2, replace=False)]
    for passes in (ALL_PASSES, frozenset[str](), *(frozenset({name}) for name in alone)):
        size, threads, depth = int(rng.choice(sizes)), int(rng.choice([1, 2, 4])), int(rng.integers(0, 4))
        yield PipelineConfig(batch_size=size, threads=threads, seed=seed, depth=depth, passes=passes)


_FUNCTIONS = re.compile(r'"import", "v": "([^"]+)"')


def check_json(graph: Graph, find: Find = find_public) -> Graph:
    """Check that writing and reading a graph gives the same graph. Return it."""
    text = graph.to_json()
    own = [name.replace(":", ".") for name in _FUNCTIONS.findall(text)]  # the graph is the caller's
    again = Graph.from_json(text, find, own)
    assert again.fingerprint() == graph.fingerprint(), "the graph changes when it is written to JSON and read again"
    return again


def check_eager(graph: Graph, interpreter: Interpreter) -> int:
    """Check that every deterministic node gives the same result as an eager call, on a batch and on one sample.

    A call may be refused where the graph is not: it knows less, since sizes are not part of its inputs' types.

    Returns:
        The number of compared nodes: those with inputs, of public operators, without draws.
    """
    compared = 0
    needed = graph.needed()
    for node in graph.nodes:
        if node.id not in needed or node.operator.is_source or node.operator.draws or not node.inputs:
            continue
        if node.operator.is_python() or node.operator is not _public(node.operator.name):
            continue
        outputs = [interpreter.values[e] for e in _outputs(node)]
        columns = [interpreter.column(e) for e in _outputs(node)]
        if any(interpreter.values[e].per_frame for e in (*node.inputs, *(e for _, e in node.edges))):
            continue  # an eager call does not know which axis of an array runs along the frames
        inputs = [(interpreter.values[e], interpreter.column(e)) for e in node.inputs]
        edges = {name: (interpreter.values[e], interpreter.column(e)) for name, e in node.edges}
        rows = [r for r, x in enumerate(columns[0]) if x is not None]
        if not rows or any(c[r] is None for _, c in (*inputs, *edges.values()) for r in rows):
            continue
        try:
            _check_eager_node(node, inputs, edges, list(zip(outputs, columns, strict=True)), rows)
        except UnsupportedError:
            continue
        compared += 1
    return compared


def _public(name: str) -> type[Operator] | None:
    try:
        return find_public(name)
    except ValueError:
        return None


def _outputs(node: Node) -> list[Edge]:
    return [Edge(node.id, i) for i in range(node.outputs)]


Filled = tuple[Value, Column]


def _check_eager_node(
    node: Node, inputs: list[Filled], edges: dict[str, Filled], outputs: list[Filled], rows: list[int]
) -> None:
    name = node.operator.name
    known = node.operator.all_arguments()
    constants = {
        k: v for k, v in node.args.items()
        if v is not None and k not in ("name", "device", *edges) and not _same(v, known[k].convert_default())
    }  # fmt: skip

    def batch(x: Filled) -> Batch:
        return Batch([x[1][r] for r in rows], x[0].dtype, x[0].layout)

    per_row = {k: batch(x) for k, x in edges.items()}
    got = eager._call(name, [batch(x) for x in inputs], {**constants, **per_row})
    for (value, column), result in zip(outputs, got if isinstance(got, tuple) else (got,), strict=True):
        assert_rows(list(result), [column[r] for r in rows], f"eager `{name}` on a batch")
        assert result.dtype == value.dtype, f"eager `{name}`: expected {value.dtype}, got {result.dtype}"
        assert result.layout == value.layout, f"eager `{name}`: expected layout {value.layout}, got {result.layout}"
    r = rows[-1]
    one = [Constant(column[r], layout=value.layout) for value, column in inputs]
    got = eager._call(name, one, {**constants, **{k: column[r] for k, (_, column) in edges.items()}})
    for (_, column), result in zip(outputs, got if isinstance(got, tuple) else (got,), strict=True):
        assert_exact(result, column[r], f"eager `{name}` on one sample")


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return a is b
    return bool(a == b)


# ---- operators ----


def check_operator(
    operator: type[Operator],
    inputs: Sequence[Sequence[Any]] | None = None,
    *,
    cases: Sequence[Mapping[str, Any]] | None = None,
    layouts: Sequence[str] = (),
    seed: int = 1,
    **tolerance: float,
) -> None:
    """Check that an operator obeys the laws in each of its cases.

    * The reference gives the types, ranks and extents that are inferred while planning.
    * The fast form equals the reference, in the bytes or within ``tolerance``.
    * A batch equals its rows one by one. Threads and passes change nothing.
    * A numeric argument that may differ per row gives the same result as a constant and as a node.
    * An eager call of a row equals the pipeline, if the operator is registered and rows do not depend on their batch.
    * The operator does not write to its inputs.

    Args:
        operator: the class; it need not be registered.
        inputs: rows, each with one array per input; by default those of the operator's ``case_inputs``, else small RGB
            images, uint8 HWC, of several sizes.
        cases: arguments; by default the operator's ``cases``.
        layouts: axes of the inputs; by default those that the operator assumes for unnamed ones.
        seed: seed of the draws.
        **tolerance: ``atol``, ``bound`` and ``share`` of :func:`~stoker.testing.tolerances.assert_close`; by default
            exact.

    Raises:
        AssertionError: a law is broken; the text names the law, the case, the row and the element.
        UnsupportedError: the operator is stateful: its rows depend on each other.
    """
    if operator.stateful:
        raise UnsupportedError(
            f"`{operator.name}` is stateful: its rows depend on those before, so these laws do not hold"
        )
    for case in operator.cases if cases is None else cases:
        own = operator.case_inputs(case) if inputs is None else inputs
        rows = [tuple(map(np.asarray, row)) for row in (_images(operator.inputs[0]) if own is None else own)]
        try:
            _Trial(operator, dict(case), rows, layouts, seed, tolerance).run()
        except AssertionError as error:
            raise AssertionError(f"`{operator.name}` with {dict(case)}: {error}") from error


def check_on_gpu(
    operator: type[Operator],
    inputs: Sequence[Sequence[Any]] | None = None,
    *,
    cases: Sequence[Mapping[str, Any]] | None = None,
    layouts: Sequence[str] = (),
    device_id: int = 0,
) -> None:
    """Check that a registered operator gives the CPU's bits on a GPU, in each of its cases. NaNs may differ in bits.

    Args:
        operator: the class.
        inputs: rows, each with one array per input; by default as for :func:`check_operator`.
        cases: arguments; by default the operator's ``cases``.
        layouts: axes of the inputs.
        device_id: number of the GPU.

    Raises:
        AssertionError: the results differ, or the operator did not run on the GPU.
        DeviceError, UnsupportedError: there is no GPU, or no compiler for its kernels.
    """
    from ..frontends import fn
    from ..frontends.decorator import pipeline_def

    for case in operator.cases if cases is None else cases:
        own = operator.case_inputs(case) if inputs is None else inputs
        rows = [tuple(map(np.asarray, row)) for row in (_images(operator.inputs[0]) if own is None else own)]
        names = [*layouts, *[""] * (len(rows[0]) - len(layouts))]

        @pipeline_def(batch_size=len(rows), num_threads=1, seed=1)
        def pipe(on_gpu: bool, rows: Any = rows, names: Any = names, case: Any = case) -> Any:
            fed = [
                fn.external_source(lambda i=i: [row[i] for row in rows], dtype=str(rows[0][i].dtype),
                                   ndim=rows[0][i].ndim, layout=layout or None)
                for i, layout in enumerate(names)
            ]  # fmt: skip
            function: Any = fn
            for part in operator.name.split("."):
                function = getattr(function, part)
            result = function(*(x.gpu() if on_gpu else x for x in fed), **case)
            return tuple(result) if isinstance(result, (list, tuple)) else result

        with pipe(False) as cpu, pipe(True, device_id=device_id) as gpu:
            for o, (want, got) in enumerate(zip(cpu.run(), gpu.run(), strict=True)):
                what = f"`{operator.name}` with {dict(case)}: output {o}"
                assert got.device != "cpu", f"{what} was computed on the CPU"
                assert_rows([np.array(x) for x in got.as_cpu()], [np.array(x) for x in want], f"{what} on the GPU")


def _images(count: int) -> list[list[npt.NDArray[Any]]]:
    rng = np.random.default_rng(7)
    shapes = ((13, 17, 3), (20, 9, 3), (8, 30, 3))
    return [[rng.integers(0, 256, shape, dtype=np.uint8) for _ in range(count)] for shape in shapes]


class _Trial:
    """One operator with one set of arguments over some rows."""

    def __init__(
        self,
        operator: type[Operator],
        case: dict[str, Any],
        rows: list[tuple[npt.NDArray[Any], ...]],
        layouts: Sequence[str],
        seed: int,
        tolerance: Mapping[str, float],
    ) -> None:
        self.operator, self.case, self.data, self.seed, self.tolerance = operator, case, rows, seed, tolerance
        self.layouts = [*layouts, *[""] * (len(rows[0]) - len(layouts))]
        n = len(rows)
        # Keys and epochs from the middle of a long run, so that no code relies on small ones.
        self.rows = Rows(np.arange(2**40, 2**40 + n, dtype=np.uint64), np.full(n, 3, np.int64), (), 3, n)

    def find(self, name: str) -> type[Operator]:
        own: dict[str, type[Operator]] = {Fed.name: Fed, self.operator.name: self.operator}
        return own.get(name) or find_public(name)

    def graph(self, per_row: Mapping[str, npt.NDArray[Any]]) -> tuple[Graph, Feeds]:
        """Return a graph of the operator with fed inputs, and with some arguments as fed nodes."""
        builder = GraphBuilder(self.find)
        columns = [[row[i] for row in self.data] for i in range(len(self.data[0]))]
        nodes = [self._fed(builder, column, layout) for column, layout in zip(columns, self.layouts, strict=True)]
        edges = {name: self._fed(builder, [x] * len(self.data), fixed=True) for name, x in per_row.items()}
        columns += [[x] * len(self.data) for x in per_row.values()]
        if not per_row:  # draw ids count the nodes before, so the number of nodes must not depend on `per_row`
            self._fed(builder, [np.zeros(())], fixed=True)
        result = builder.call(self.operator.name, nodes, {**self.case, **edges})
        outputs = result if isinstance(result, tuple) else (result,)
        return builder.graph(outputs), {(i, 0): column for i, column in enumerate(columns)}

    @staticmethod
    def _fed(builder: GraphBuilder, column: Column, layout: str = "", *, fixed: bool = False) -> DataNode:
        first = column[0]
        shape: tuple[int | None, ...] = first.shape if fixed else (None,) * first.ndim
        if not fixed and first.ndim > 2:  # the number of channels is part of an image's type, its size is not
            at = (layout or "FHWC"[-first.ndim :]).find("C")
            same = at >= 0 and all(x.shape[at] == first.shape[at] for x in column)
            shape = tuple(first.shape[i] if same and i == at else None for i in range(first.ndim))
        return builder.add_operator(Fed, Fed.fill_defaults({"spec": Spec(DType.of(first.dtype), shape, layout)}, {}))

    def run(self) -> None:
        graph, feeds = self.graph({})
        before = [x.tobytes() for row in self.data for x in row]
        want = run_reference(graph, self.rows, self.seed, feeds, find=self.find)
        plain = self._run(graph, feeds, ALL_PASSES)
        for o, (got, expected) in enumerate(zip(plain, want, strict=True)):
            assert_rows(got, expected, f"output {o} against the reference", **self.tolerance)
        self._same(plain, self._run(graph, feeds, frozenset()), "without passes")
        self._same(plain, self._run(graph, feeds, ALL_PASSES, threads=2), "on two threads")
        if not self.operator.depends_on_batch(self.case):
            single = [self._run(graph, feeds, ALL_PASSES, only=r) for r in range(len(self.data))]
            self._same(plain, [[x[o][0] for x in single] for o in range(len(plain))], "row by row")
        for name, argument in self.operator.all_arguments().items():
            if argument.per_row and argument.kind in ("int", "float") and self.case.get(name) is not None:
                graph, feeds = self.graph({name: np.asarray(self.case[name], np.float64)})
                self._same(plain, self._run(graph, feeds, ALL_PASSES), f"with `{name}` as a node")
        alone = not self.operator.draws and not self.operator.depends_on_batch(self.case)
        if alone and _public(self.operator.name) is self.operator:
            self._eager(plain)
        assert before == [x.tobytes() for row in self.data for x in row], "it writes into its inputs"

    def _run(
        self, graph: Graph, feeds: Feeds, passes: frozenset[str], *, threads: int = 0, only: int | None = None
    ) -> list[Column]:
        """Return the outputs, computed on the caller's thread unless ``threads`` is given."""
        chosen = slice(None) if only is None else slice(only, only + 1)
        rows = Rows(self.rows.keys[chosen], self.rows.epochs[chosen], (), 3, len(self.data))
        fed = {key: [np.asarray(x, order="C") for x in column[chosen]] for key, column in feeds.items()}
        plan = make_plan(graph, self.find, passes=passes)
        run = Run(load(plan, codecs=OpenCodecs().get), graph, max(1, threads), self.seed, {})
        try:
            batch = run.collect(run.prepare(rows, fed, {})) if threads else run.run_inline(rows, fed)
        finally:
            run.close()
        columns = [[np.array(x) for x in output] for output in batch]
        for o, (column, planned) in enumerate(zip(columns, plan.outputs, strict=True)):
            for x in column:
                self._as_planned(x, planned, o)
        return columns

    @staticmethod
    def _as_planned(x: npt.NDArray[Any], planned: PlannedOutput, output: int) -> None:
        assert x.dtype == planned.dtype.numpy, f"output {output}: {planned.dtype} is inferred, got {x.dtype}"
        assert x.ndim == planned.rank, f"output {output}: {planned.rank} axes are inferred, got {x.ndim}"
        assert planned.shape in (None, x.shape), f"output {output}: {planned.shape} is inferred, got {x.shape}"

    @staticmethod
    def _same(plain: list[Column], other: list[Column], how: str) -> None:
        for o, (a, b) in enumerate(zip(other, plain, strict=True)):
            assert_rows(a, b, f"output {o} {how}", nan_bits=True)

    def _eager(self, plain: list[Column]) -> None:
        for r, row in enumerate(self.data):
            one = [Constant(x, layout=layout) for x, layout in zip(row, self.layouts, strict=True)]
            result = eager._call(self.operator.name, one, dict(self.case))
            outputs = result if isinstance(result, tuple) else (result,)
            for o, (got, column) in enumerate(zip(outputs, plain, strict=True)):
                assert_exact(got, column[r], f"output {o} of the eager call, row {r}", nan_bits=True)
