# SPDX-License-Identifier: Apache-2.0
"""Display of graphs and plans: text and Graphviz."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..contract.argument import Argument
from ..contract.errors import ArgumentError
from ..contract.gpu import Target
from ..contract.lowering import UndeclaredTypes
from ..contract.operator import Operator
from ..contract.step import StepList, Value
from ..contract.text import brief
from .analysis import PASSES, transform
from .node import Graph, Node


def show(
    graph: Graph,
    find: Callable[[str], type[Operator]],
    form: str = "text",
    sources: Mapping[int, Any] | None = None,
    passes: frozenset[str] = frozenset(PASSES),
    target: Target = Target(),  # noqa: B008 - it is frozen
) -> str:
    """Return the graph as text (``form`` "text": nodes, then steps after the passes) or in Graphviz's language ("dot").

    Args:
        target: facts about the machine.
    """
    if not isinstance(form, str) or form not in ("text", "dot"):  # `Pipeline.show` draws "svg"
        raise ArgumentError(f'`show`: expected form "text", "dot" or "svg", got {brief(form)}')
    if form == "dot":
        return _dot(graph)
    lines = ["graph", *(f"  {_line(n)}" for n in graph.nodes)]
    lines.append("  return " + ", ".join(f"{e.node}.{e.output}" for e in graph.outputs))
    try:
        steps = transform(graph, find, {}, passes, sources, target)
    except UndeclaredTypes as undeclared:
        name = graph.nodes[undeclared.node].operator.name
        return "\n".join([*lines, f"plan: built with the first batch, which reveals the types of `{name}`"]) + "\n"
    return "\n".join([*lines, "plan", *(f"  {line}" for line in show_steps(steps))]) + "\n"


def show_steps(steps: StepList) -> list[str]:
    """Return the steps as text, one per line."""
    lines = []
    for step in steps.steps:
        outs = ", ".join(map(_value, (steps.values[v] for v in step.outputs)))
        guards = "".join(f" if {'' if w else 'not '}%{v}" for v, w in step.guards)
        frames = " per frame" if step.frames is not None else ""
        inputs = ", ".join(f"%{v}" for v in step.inputs)
        where = " on the GPU" if step.on_gpu else ""
        lines.append(f"{outs} = {step.body!r} ({inputs}){frames}{guards}{where}")
    return [*lines, "return " + ", ".join(f"%{v}" for v in steps.outputs)]


def _value(value: Value) -> str:
    """Return a value with its type and extents as text; a counted extent with its count and bound."""
    shape = list(map(repr, value.shape))
    if value.counted is not None:
        shape[0] = f"%{value.counted.count} <= {value.counted.max_output!r}"
    return f"%{value.id}:{value.dtype}[{', '.join(shape)}]"


def _line(node: Node) -> str:
    inputs = [f"{e.node}.{e.output}" for e in node.inputs]
    per_row = {k: f"{e.node}.{e.output}" for k, e in node.edges}
    parts = inputs + [f"{k}={v}" for k, v in {**per_row, **constants(node)}.items()]
    guards = "".join(f" if {'' if w else 'not '}{e.node}.{e.output}" for e, w in node.guards)
    where = f"  # {node.source_line}" if node.source_line else ""
    return f"{node.id} = {node.operator.name}({', '.join(parts)}){guards}{where}"


def constants(node: Node) -> dict[str, str]:
    """Return the constants of a node that differ from their defaults, as short texts by name."""
    per_row = {name for name, _ in node.edges}
    known = node.operator.all_arguments()
    return {
        key: _short(value)
        for key, value in node.args.items()
        if key not in per_row and value is not None and not (key in known and _is_default(known[key], value))
    }


def _is_default(argument: Argument, value: Any) -> bool:
    return not isinstance(value, np.ndarray) and bool(argument.convert_default() == value)


def _short(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return value.name
    text = repr(value) if not callable(value) else getattr(value, "__qualname__", repr(value))
    return text if len(text) <= 60 else text[:57] + "..."


def _dot(graph: Graph) -> str:
    lines = ["digraph stoker {", "  rankdir=LR; node [shape=box, fontname=monospace];"]
    for n in graph.nodes:
        lines.append(f'  n{n.id} [label="{n.id} {n.operator.name}"];')
        lines += [f"  n{e.node} -> n{n.id};" for e in n.inputs]
        lines += [f'  n{e.node} -> n{n.id} [style=dashed, label="{k}"];' for k, e in n.edges]
        lines += [f'  n{e.node} -> n{n.id} [style=dotted, label="{"if" if w else "if not"}"];' for e, w in n.guards]
    for i, e in enumerate(graph.outputs):
        lines.append(f'  out{i} [shape=plaintext, label="output {i}"]; n{e.node} -> out{i};')
    return "\n".join([*lines, "}"]) + "\n"
