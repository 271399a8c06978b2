# SPDX-License-Identifier: Apache-2.0
"""Lowering of a graph to steps, needed nodes only, in the order of definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..contract.errors import ArgumentError, UnsupportedError, message
from ..contract.expr import leaves
from ..contract.lowering import Lowering
from ..contract.operator import Operator, Spec
from ..contract.pixel import scalars
from ..contract.scope import Scope
from ..contract.step import (
    InlinedProgram,
    Interpolator,
    Native,
    PyCall,
    Stage,
    Step,
    StepList,
    Value,
    View,
    ViewOp,
)
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
    return (set(step.inputs) | {g for g, _ in step.guards} | number_sources(step, steps)) - set(step.outputs)


def number_sources(step: Step, steps: StepList) -> set[int]:
    """Return the values that a step's numbers (windows, uniforms, extents, checks) are computed from."""
    found: set[int] = set()
    for scalar in step_scalars(step, steps):
        leaves(scalar, found)
    return found - set(step.outputs)


def step_scalars(step: Step, steps: StepList) -> list[Any]:
    """Return every scalar that the run loop computes for a step."""
    found: list[Any] = [step.frames, *body_scalars(step)]
    for check in step.checks:
        found += [check.condition, *check.values]
    for v in step.outputs:
        value = steps.values[v]
        found += value.shape
        if value.counted is not None:
            found.append(value.counted.max_output)
    return found


def body_scalars(step: Step) -> list[object]:
    """Return every scalar in a step's body."""
    body = step.body
    if isinstance(body, PyCall):
        return []
    if isinstance(body, Native):
        return [*body.params, *(_inlined_scalars(body.inlined) if body.inlined else ())]
    found: list[object] = []
    chains = [body.ops] if isinstance(body, View) else [*body.pre, *body.post]
    for chain in chains:
        found += _view_scalars(chain)
    if isinstance(body, Stage):
        found += scalars([x for port in body.program for x in port])
        if isinstance(body.interpolator, Interpolator):
            found += body.interpolator.params
    return found


def _inlined_scalars(inlined: InlinedProgram) -> list[object]:
    """Return every scalar of a program in a native kernel."""
    found: list[object] = [*inlined.shape, *scalars([x for port in inlined.program for x in port])]
    for chain in inlined.pre:
        found += _view_scalars(chain)
    return found


def _view_scalars(ops: Sequence[ViewOp]) -> list[object]:
    found: list[object] = []
    for op in ops:
        found += [op.start, op.step, op.extent, *(op.list if op.kind == "reshape" else ())]
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
