# SPDX-License-Identifier: Apache-2.0
"""An execution's plan: made at once, or with the first batch where only that tells a Python node's types."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..contract.errors import ArgumentError, DataError, message
from ..contract.lowering import Undeclared
from ..contract.operator import Operator, Spec
from ..contract.reader import OpenSource
from ..contract.step import PyCall
from ..graph.node import Graph, Node
from ..graph.plan import Plan, make_plan
from .decoding import OnEngines
from .failures import Failures
from .flight import Failure, Feeds, Replay
from .python_work import specs_of
from .run import Run
from .schedule import Rows
from .settings import Settings
from .split import Decoder


class Planning:
    """Makes the plan of a graph.

    Args:
        feeders: what gives data for each source of the caller's, by node.
        failures: says whether the first batch's bad rows are bearable.

    Attributes:
        plan: None until the first batch's rows have told all types.
        decoders: the plan's, that rows may be split between.
        on_engines: its decoders on the GPU's JPEG engines.
        states: of stateful operators that ran while types were found, by node.
    """

    def __init__(
        self, graph: Graph, find: Callable[[str], type[Operator]], settings: Settings,
        sources: Mapping[int, OpenSource], feeders: Mapping[int, Any], failures: Failures,
    ) -> None:  # fmt: skip
        self._graph = graph
        self._find = find
        self._settings = settings
        self._sources = sources
        self._feeders = feeders
        self._failures = failures
        self._replay: Replay | None = None
        self.plan: Plan | None = None
        self.decoders: Sequence[Decoder] = ()
        self.on_engines: Sequence[OnEngines] = ()
        self.states: dict[int, Any] = {}
        with contextlib.suppress(Undeclared):
            self.plan = self._make(graph, {})

    def take_replay(self) -> Replay | None:
        """What Python nodes gave for the first batch's rows while types were found; once."""
        replay, self._replay = self._replay, None
        return replay

    def _make(self, graph: Graph, discovered: Mapping[int, tuple[Spec, ...]]) -> Plan:
        gpu = self._settings.gpu
        known, engines = (len(gpu.decoders), len(gpu.on_engines)) if gpu else (0, 0)
        plan = make_plan(graph, self._find, discovered, self._settings.passes, self._sources, gpu)
        self.decoders = gpu.decoders[known:] if gpu else ()
        self.on_engines = gpu.on_engines[engines:] if gpu else ()
        return plan

    def discover(self, rows: Rows, feeds: Feeds) -> None:
        """Find the types that only the first batch tells; Python nodes still see every row once."""
        discovered: dict[int, tuple[Spec, ...]] = {node: feeder.specs for node, feeder in self._feeders.items()}
        replay: Replay = {}
        while self.plan is None:
            try:
                self.plan = self._make(self._graph, discovered)
            except Undeclared as undeclared:
                untold = self._graph.nodes[undeclared.node]
                discovered[untold.id] = self._try_out(untold, rows, feeds, discovered, replay)
        self._replay = replay

    def _try_out(
        self, node: Node, rows: Rows, feeds: Feeds, discovered: Mapping[int, tuple[Spec, ...]], replay: Replay
    ) -> tuple[Spec, ...]:
        part = self._graph.before(node.id)
        plan = self._make(part, discovered)
        run = Run(plan, part, 1, self._settings.seed, self._sources, self._settings.gpu or None)
        operator = node.operator()
        if operator.stateful:
            run.python.states[node.id] = operator.init()
        run.python.states.update(self.states)
        layouts = tuple(o.layout for o in plan.outputs[: len(node.inputs)])
        edges = tuple(name for name, _ in node.edges)
        body = PyCall(operator, node.args, edges, layouts, node.draw, node.id, False)
        try:
            lost: list[Failure] = []
            parents = run.run_here(rows, feeds, replay, record=True, failed=lost)
            self._failures.require_tolerable(lost)
            bad = {f.row for f in lost}  # they fail again when the batch is run, and are dealt with then
            values = [[p[r] for p in parents] for r in range(len(rows))]
            active = [r for r, v in enumerate(values) if r not in bad and _holds(node, v)]
            given = [values[r][: len(node.inputs) + len(edges)] for r in active]
            made = run.python.call(body, active, given, rows, self._settings.seed)
            replay[node.id] = dict(zip(active, made, strict=True))
        finally:
            self.states.update(run.python.states)
            run.close()
        return _specs(node, made)


def _specs(node: Node, made: Sequence[Any]) -> tuple[Spec, ...]:
    """The types of a node's outputs, from the first row of ``made`` that succeeded; the others are exceptions."""
    subject, source = node.operator.subject(node.args), node.source
    good = next((m for m in made if not isinstance(m, BaseException)), None)
    if good is None:
        failed = next((m for m in made if isinstance(m, BaseException)), None)
        text = f"{type(failed).__name__}: {failed}" if failed else "it ran for no row of the first batch"
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
    """Whether the node runs for a row; its conditions come last among its parents."""
    guards = parents[len(parents) - len(node.guards) :]
    return all(bool(g) == wanted for g, (_, wanted) in zip(guards, node.guards, strict=True))
