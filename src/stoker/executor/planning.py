# SPDX-License-Identifier: Apache-2.0
"""Planning of an execution: immediate, or with the first batch if only that batch reveals a Python node's types."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..codecs.open_codecs import OpenCodecs
from ..contract.config import PipelineConfig
from ..contract.errors import ArgumentError, DataError, message
from ..contract.feed import Feeder
from ..contract.gpu import Target
from ..contract.lowering import UndeclaredTypes
from ..contract.operator import Operator, Spec
from ..contract.reader import OpenSource
from ..contract.step import PyCall
from ..contract.text import reason_of
from ..contract.warning import warn, warn_at_line
from ..graph.analysis import PASSES
from ..graph.load import LoadedPlan, load
from ..graph.node import Graph, Node
from ..graph.plan import Plan
from ..graph.planner import make_plan
from .failures import Failures
from .flight import Feeds, Replay, RowFailure
from .isolation import IsolatedOperators
from .python_work import specs_of
from .run import OpenGpu, Run
from .schedule import Rows


class Planning:
    """Planner of one execution: makes the plan, immediately or with the first batch.

    Args:
        codecs: the pipeline's codecs, which make some of the plan's kernels.
        feeders: the caller's sources, by node.
        failures: policies that decide whether bad rows of the first batch are tolerable.

    Attributes:
        find: function that returns an operator by name.
        passes: names of the passes.
        loaded: the plan with its kernels; None until the first batch has revealed all types.
        states: states of stateful operators that ran during type discovery, by node.
        isolated: processes of isolated operators, of type discovery and of the run.
    """

    def __init__(
        self, graph: Graph, find: Callable[[str], type[Operator]], config: PipelineConfig, gpu: OpenGpu | None,
        codecs: OpenCodecs, sources: Mapping[int, OpenSource], feeders: Mapping[int, Feeder], failures: Failures,
    ) -> None:  # fmt: skip
        self._graph = graph
        self.find = find
        self._seed = config.seed
        self.isolated = IsolatedOperators(config.workers)
        self._gpu = gpu
        self._codecs = codecs
        self._sources = sources
        self._feeders = feeders
        self._failures = failures
        self._replay: Replay | None = None
        self.passes = frozenset(PASSES) if config.passes is None else config.passes
        self._has_cpu_fallback = config.without_gpu == "cpu"
        self.loaded: LoadedPlan | None = None
        self.states: dict[int, Any] = {}
        with contextlib.suppress(UndeclaredTypes):
            self.loaded = self._make(graph, {})

    @property
    def plan(self) -> Plan | None:
        """Return the plan without its kernels."""
        return self.loaded.plan if self.loaded is not None else None

    @property
    def target(self) -> Target:
        """Facts about the machine that the plan depends on."""
        return Target(self._gpu is not None, self._has_cpu_fallback, self._codecs.indexed_codecs)

    def take_replay(self) -> Replay | None:
        """Return the Python nodes' results for the first batch, computed during type discovery.

        Only the first call returns them.
        """
        replay, self._replay = self._replay, None
        return replay

    def _make(
        self, graph: Graph, discovered: Mapping[int, tuple[Spec, ...]], *, outputs_on_cpu: bool = False
    ) -> LoadedPlan:
        plan = make_plan(
            graph, self.find, discovered, self.passes, self._sources, self.target, outputs_on_cpu=outputs_on_cpu
        )
        _warn_of_nodes_on_cpu(graph, plan)
        return load(plan, self._gpu, self._codecs.get)

    def discover(self, rows: Rows, feeds: Feeds) -> None:
        """Find the types that only the first batch reveals. Each row passes each Python node exactly once."""
        discovered: dict[int, tuple[Spec, ...]] = {number: feeder.specs for number, feeder in self._feeders.items()}
        replay: Replay = {}
        while self.loaded is None:
            try:
                self.loaded = self._make(self._graph, discovered)
            except UndeclaredTypes as undeclared:
                node = self._graph.nodes[undeclared.node]
                discovered[node.id] = self._try_out(node, rows, feeds, discovered, replay)
        self._replay = replay

    def _try_out(
        self, node: Node, rows: Rows, feeds: Feeds, discovered: Mapping[int, tuple[Spec, ...]], replay: Replay
    ) -> tuple[Spec, ...]:
        part = self._graph.before(node.id)
        loaded = self._make(part, discovered, outputs_on_cpu=True)
        run = Run(loaded, part, 1, self._seed, self._sources, self._gpu)
        run.python.share_isolated(self.isolated)
        operator = node.operator()
        if operator.stateful:
            run.python.states[node.id] = operator.init()
        run.python.states.update(self.states)
        layouts = tuple(o.layout for o in loaded.plan.outputs[: len(node.inputs)])
        edges = tuple(name for name, _ in node.edges)
        body = PyCall(operator, node.args, edges, layouts, node.draw, node.id, False)
        try:
            lost: list[RowFailure] = []
            parents = run.run_inline(rows, feeds, replay, record=True, failed=lost)
            self._failures.require_tolerable(lost)
            bad = {f.row for f in lost}  # they fail again when the batch runs, where the policies apply
            values = [[p[r] for p in parents] for r in range(len(rows))]
            active = [r for r, v in enumerate(values) if r not in bad and _holds(node, v)]
            arguments = [values[r][: len(node.inputs) + len(edges)] for r in active]
            results = run.python.call(body, active, arguments, rows, self._seed)
            replay[node.id] = dict(zip(active, results, strict=True))
        finally:
            self.states.update(run.python.states)
            run.close()
        return _specs(node, results)


def _warn_of_nodes_on_cpu(graph: Graph, plan: Plan) -> None:
    for number, moved in plan.on_cpu.items():
        node = graph.nodes[number]
        names = ", ".join(f"`{_subject(graph.nodes[n])}`" for n in sorted(moved))
        text = (
            f"`{_subject(node)}` runs on the CPU, so the CPU also computes what it reads, which is placed on a GPU: "
            f"{names}. The results are the same bits"
        )
        if node.source_line is None:
            warn(text, stacklevel=2)
        else:
            warn_at_line(text, node.source_line.file, node.source_line.line)


def _subject(node: Node) -> str:
    return node.operator.subject(node.args)


def _specs(node: Node, results: Sequence[Any]) -> tuple[Spec, ...]:
    """Return the types of a node's outputs from the first of its ``results`` that is not an exception."""
    subject, source = node.operator.subject(node.args), node.source_line
    good = next((m for m in results if not isinstance(m, BaseException)), None)
    if good is None:
        failed = next((m for m in results if isinstance(m, BaseException)), None)
        text = f"{type(failed).__name__}: {reason_of(failed)}" if failed else "it ran for no row of the first batch"
        hint = (
            "Its outputs' types are taken from the first batch, so at least one row of it must succeed, unless they "
            "are declared"
        )
        raise DataError(message(subject, text, source=source, hint=hint)) from failed
    try:
        return specs_of(good, node.args.get("output_layouts") or ())
    except (TypeError, ArgumentError) as error:
        raise DataError(message(subject, str(error), source=source)) from error


def _holds(node: Node, parents: list[Any]) -> bool:
    """Return whether the node runs for a row. Its conditions are the last of its parents."""
    guards = parents[len(parents) - len(node.guards) :]
    return all(bool(g) == wanted for g, (_, wanted) in zip(guards, node.guards, strict=True))
