# SPDX-License-Identifier: Apache-2.0
"""Lowering of a graph to steps, needed nodes only, in the order of definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..contract.errors import ArgumentError, UnsupportedError, message
from ..contract.expr import Expr, leaves
from ..contract.lowering import Lowering
from ..contract.operator import Operator, Spec
from ..contract.scope import Scope
from ..contract.step import PyCall, Step, StepList, Value
from ..contract.types import DType
from .node import Edge, Graph, Node


def lower(
    graph: Graph,
    find: Callable[[str], type[Operator]],
    discovered: Mapping[int, tuple[Spec, ...]] | None = None,
    sources: Mapping[int, Any] | None = None,
) -> StepList:
    """Return the steps of ``graph``.

    Raises:
        ArgumentError, UnsupportedError: an operator refuses its arguments; the text has the user's line.
        UndeclaredTypes: a Python node's types are not known; ``discovered`` supplies them.
    """
    lowering = Lowering(find, discovered or {}, sources or {})
    needed = graph.needed()
    values: dict[Edge, Value] = {}
    for node in graph.nodes:
        if node.id in needed:
            for i, value in enumerate(_lower_node(lowering, node, values)):
                values[Edge(node.id, i)] = value
    steps = lowering.list
    steps.outputs = [values[e].id for e in graph.outputs]
    return prune(steps)


def _lower_node(lowering: Lowering, node: Node, values: Mapping[Edge, Value]) -> tuple[Value, ...]:
    operator = node.operator()
    edges = {name: values[e] for name, e in node.edges}
    guards = tuple((values[e].id, wanted) for e, wanted in node.guards)
    scope = Scope(operator, node.args, edges, node.id, node.draw, guards, node.device)
    try:
        inputs = [values[e] for e in node.inputs]
        if not operator.takes_bfloat16 and any(x.dtype == DType.BFLOAT16 for x in (*inputs, *edges.values())):
            raise UnsupportedError(
                f"`{operator.name}`: it does not take bfloat16. Cast it first "
                '(`fn.cast(x, dtype="float32")` keeps every value)'
            )
        return lowering.lower(scope, inputs)
    except (ArgumentError, UnsupportedError) as error:
        text = str(error).removeprefix(f"`{operator.name}`: ")
        if node.source_line is None or f"made at {node.source_line}" in text:
            raise
        raise type(error)(message(operator.subject(node.args), text.rstrip("."), source=node.source_line)) from None


def reads(step: Step, steps: StepList) -> set[int]:
    """Return all values that a step reads: inputs, conditions, and the values that its numbers are computed from."""
    found = number_sources(step, steps)
    found.update(step.inputs)
    found.update(g for g, _ in step.guards)
    return found.difference(step.outputs)


def number_sources(step: Step, steps: StepList) -> set[int]:
    """Return the values that a step's numbers (windows, uniforms, extents, checks) are computed from."""
    found = set(step.body.reads)
    for scalar in _own_scalars(step, steps):
        leaves(scalar, found)
    return found.difference(step.outputs)


def step_expressions(step: Step, steps: StepList) -> list[Expr]:
    """Return every expression that the run loop computes for a step."""
    return [*step.body.expressions, *(x for x in _own_scalars(step, steps) if isinstance(x, Expr))]


def _own_scalars(step: Step, steps: StepList) -> list[object]:
    """Return the numbers of a step that do not belong to its body."""
    found: list[object] = [step.frames]
    for check in step.checks:
        found += (check.condition, *check.values)
    for v in step.outputs:
        value = steps.values[v]
        found += value.shape
        if value.counted is not None:
            found.append(value.counted.max_output)
    return found


def prune(steps: StepList) -> StepList:
    """Return the steps without unused ones. Steps with effects stay."""
    needed = set(steps.outputs)
    kept: list[Step] = []
    for step in reversed(steps.steps):
        impure = isinstance(step.body, PyCall) and not step.body.pure
        if impure or needed.intersection(step.outputs):
            kept.append(step)
            needed |= reads(step, steps)
    kept.reverse()
    return StepList(kept, steps.values, steps.outputs, steps.fed, steps.readers)
