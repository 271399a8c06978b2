# SPDX-License-Identifier: Apache-2.0
"""Part of a pipeline that Ray's actors compute, and the rest, which the consumer's process computes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..contract.errors import SourceLine, StateError, StokerError, UnsupportedError
from ..contract.feed import Feeder
from ..contract.gpu import Target
from ..contract.lowering import Lowering
from ..contract.operator import Spec
from ..contract.reader import Source
from ..contract.step import Value
from ..contract.types import DType
from ..executor.execution import Allocate, Execution
from ..executor.schedule import Rows
from ..frontends.registry import find
from ..graph.cut import Cut, data_values, divide, find_cut
from ..graph.node import Edge, Graph, Node
from ..graph.passes.placement import place
from ..graph.plan import PlannedOutput
from ..graph.planner import make_plan

_GIVEN = "expected rows with their data, from an actor"


class Received(Source, name="received"):
    """Rows that another process has computed, in place of a node.

    Its arguments are the types of the node's outputs, and the numbers of those that pass; no other is used.
    """

    pure = True

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return len(args["specs"])

    @classmethod
    def open(cls, args: Mapping[str, Any]) -> Feeder:
        """Return a feeder whose batches are given with their rows."""
        return _Given(args["specs"])

    def lower(self, c: Lowering) -> tuple[Value, ...]:
        specs, passes = c.scope.args["specs"], c.scope.args["passes"]
        return tuple(
            c.fed(spec, i) if i in passes else c.opaque(spec.dtype, len(spec.shape), spec.layout)
            for i, spec in enumerate(specs)
        )


class _Given(Feeder):
    """Feeder of rows that are given when they run."""

    fed_by_hand = True

    def __init__(self, specs: tuple[Spec, ...]) -> None:
        self._specs = specs

    @property
    def specs(self) -> tuple[Spec, ...]:
        return self._specs

    def pull(self, count: int, epoch: int) -> tuple[Any, ...]:
        """Raise StateError: the rows that actors compute come with their numbers."""
        raise StateError(_GIVEN)

    def feed(self, data: Any, limit: int, layout: str | None) -> None:
        """Raise StateError, as :meth:`pull`."""
        raise StateError(_GIVEN)

    def require_resumable(self, source: SourceLine | None) -> None:
        """Do nothing: the position is the whole pipeline's."""


class Division:
    """Division of a pipeline between actors and this process.

    Args:
        execution: the pipeline's.
        whole: let the actors compute all of it.

    Attributes:
        graph: the part of the actors.
        outputs: descriptions of its outputs.
        text: the place of the division and its reason, for people.

    Raises:
        UnsupportedError: the pipeline has nodes on a GPU and cannot be divided; the text has the reason.
    """

    def __init__(self, execution: Execution, *, whole: bool) -> None:
        assert execution.plan is not None
        self.graph, self.outputs = execution.graph, execution.plan.outputs
        self._rest: Execution | None = None
        self._values: tuple[Edge, ...] = ()
        if execution.gpu is not None and whole:
            raise UnsupportedError(
                '`Remote`: expected `cut` as "fewest_bytes" for a pipeline with nodes on a GPU, got "outputs": the '
                "actors have no GPU"
            )
        reason = _reason_against(execution)
        self.text = "actors compute all of the pipeline: " + ('`cut` is "outputs"' if whole else reason)
        if not whole and not reason:
            try:
                self._divide(execution)
            except StokerError as error:
                reason = str(error)
                self.text = f"actors compute all of the pipeline, because no part of it can be divided: {error}"
        if execution.gpu is not None and self._rest is None:
            raise UnsupportedError(
                "`Remote`: expected a part of the pipeline that runs on the CPU, which actors can compute, and a rest "
                f"on the GPU, got none: {reason or self.text}"
            )

    def _divide(self, execution: Execution) -> None:
        planned = _plan_values(execution)
        sizes = {edge: size for edge, p in planned.items() if (size := _row_bytes(p)) is not None}
        values = find_cut(execution.graph, sizes)
        if values is None:
            self.text = "actors compute all of the pipeline: the shapes of its values differ from row to row"
            return
        before = _all_bytes(self.outputs)
        bytes_now = sum(sizes[v] for v in values)
        if set(values) == set(execution.graph.outputs):
            self.text = f"actors compute all of the pipeline: its outputs are the fewest bytes, {bytes_now} a row"
            return
        on_gpu = place(execution.graph)
        cut = divide(execution.graph, values, lambda node: _received(node, planned, values, on_gpu=on_gpu[node.id]))
        self._rest = _rest_of(execution, cut)
        self._values, self.graph = cut.values, cut.first
        self.outputs = tuple(planned[v] for v in cut.values)
        names = ", ".join(dict.fromkeys(f"`{execution.graph.nodes[v.node].operator.name}`" for v in values))
        instead = f"{before}" if before is not None else "an unknown number"
        self.text = (
            f"actors compute {names}, {bytes_now} bytes a row instead of {instead}; this process computes the rest"
        )

    def token(self, token: Mapping[str, Any]) -> dict[str, Any]:
        """Return a state of the whole pipeline as one of the actors' part, which has the same sources."""
        if self._rest is None:
            return dict(token)
        return {**token, "graph": self.graph.fingerprint(), "nodes": self.graph.outline()}

    @property
    def has_rest(self) -> bool:
        return self._rest is not None

    def compute_rest(self, received: Sequence[Any], rows: Rows, allocate: Allocate | None) -> list[Any]:
        """Return the pipeline's outputs for what actors have computed of some rows."""
        assert self._rest is not None
        for data, planned in zip(received, self.outputs, strict=True):
            if not isinstance(data, np.ndarray) or data.shape != (len(rows), *(planned.shape or ())):
                raise StateError("`Remote`: expected arrays of the planned shapes from an actor, got others")
        feeds = {(v.node, v.output): data for v, data in zip(self._values, received, strict=True)}
        return self._rest.compute(replace(rows, indices=()), feeds, allocate)

    def close(self) -> None:
        """Stop this process's part; idempotent."""
        if self._rest is not None:
            self._rest.close()


def _reason_against(execution: Execution) -> str:
    """Return why a pipeline cannot be divided; "" if it can."""
    needed = execution.graph.needed()
    nodes = [node for node in execution.graph.nodes if node.id in needed]
    if execution.config.on_error.action != "raise":
        return "`on_error` replaces or skips rows by their outputs"
    if any(node.guards for node in nodes):
        return "it has conditions"
    if any(node.args.get("preserve") or not node.operator.pure for node in nodes):
        return "it has operators with effects"
    return ""


def _plan_values(execution: Execution) -> dict[Edge, PlannedOutput]:
    """Return the descriptions of all values that depend on a source, as the CPU computes them."""
    graph = execution.graph
    values = data_values(graph)
    probe = Graph(graph.nodes, tuple(values), partial=True)
    plan = make_plan(probe, find, sources=execution.sources, target=Target(False, True))
    return dict(zip(values, plan.outputs, strict=True))


def _row_bytes(planned: PlannedOutput) -> int | None:
    """Return the bytes of a row; None for values whose rows have no common shape, or that NumPy does not have."""
    if planned.shape is None or planned.counted or planned.dtype == DType.BFLOAT16:
        return None
    return math.prod(planned.shape) * planned.dtype.numpy.itemsize


def _all_bytes(outputs: Sequence[PlannedOutput]) -> int | None:
    sizes = [math.prod(p.shape) * p.dtype.numpy.itemsize for p in outputs if p.shape is not None]
    return sum(sizes) if len(sizes) == len(outputs) else None


def _received(
    node: Node, planned: Mapping[Edge, PlannedOutput], values: Sequence[Edge], *, on_gpu: bool
) -> tuple[type[Source], dict[str, Any]]:
    outputs = [planned[Edge(node.id, i)] for i in range(node.outputs)]
    specs = tuple(Spec(p.dtype, p.shape if p.shape is not None else (None,) * p.rank, p.layout) for p in outputs)
    passes = tuple(v.output for v in values if v.node == node.id)
    return Received, {"specs": specs, "passes": passes, "device": "gpu" if on_gpu else "cpu"}


def _rest_of(execution: Execution, cut: Cut) -> Execution:
    """Return the execution of the rest.

    Raises:
        UnsupportedError: its outputs are described otherwise than those of the whole pipeline.
    """
    config = replace(execution.config, checkpoint=None, epoch_reader=None)
    rest = Execution(cut.rest, find, config, execution.gpu)
    assert execution.plan is not None
    if rest.plan is None or rest.plan.outputs != execution.plan.outputs:
        rest.close()
        raise UnsupportedError("the rest does not know the types that the whole pipeline knows")
    return rest
