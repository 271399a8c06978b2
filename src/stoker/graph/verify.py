# SPDX-License-Identifier: Apache-2.0
"""Verifier of graphs and steps. It runs once on every graph, and in tests between passes."""

from __future__ import annotations

from ..contract.errors import GraphError
from ..contract.step import Step, StepList
from .lower import reads
from .node import Graph, Node
from .rules import RuleViolation, check_step


def verify_graph(graph: Graph) -> None:
    """Raise GraphError if an edge points nowhere or forward, or two random calls share a draw."""
    graph.fact("verified", lambda: _verify_graph(graph))


def _verify_graph(graph: Graph) -> None:
    draws: dict[int, int] = {}
    for i, node in enumerate(graph.nodes):
        if node.id != i:
            raise GraphError(f"node {i} is numbered {node.id}")
        for edge in node.parents():
            if not 0 <= edge.node < i:
                raise GraphError(f"node {i} (`{node.operator.name}`) uses node {edge.node}, which is not before it")
            if not 0 <= edge.output < graph.nodes[edge.node].outputs:
                raise GraphError(f"node {i} (`{node.operator.name}`) uses output {edge.output} of node {edge.node}")
        if node.operator.draws:
            first = draws.setdefault(node.draw, i)
            if first != i and not _one_call(graph.nodes[first], node):
                raise GraphError(f"nodes {first} and {i} share draw {node.draw}")
    for edge in graph.outputs:
        if not 0 <= edge.node < len(graph.nodes) or not 0 <= edge.output < graph.nodes[edge.node].outputs:
            raise GraphError(f"the pipeline returns {edge}, which does not exist")


def _one_call(a: Node, b: Node) -> bool:
    """Return whether two nodes belong to one call with lists of inputs, which share its draws."""
    return (
        a.operator is b.operator
        and a.source_line == b.source_line
        and a.edges == b.edges
        and len(a.inputs) == len(b.inputs) > 0
    )


def verify_steps(steps: StepList, checked: dict[int, Step] | None = None) -> None:
    """Raise GraphError if a step reads a value before it is computed, computes one again, or breaks a rule of its body.

    Args:
        checked: steps that passed before, by identity. The steps of this list are added.
    """
    checked = {} if checked is None else checked
    computed = set(steps.fed.values())
    for i, step in enumerate(steps.steps):
        for v in sorted(reads(step, steps) - computed):
            raise GraphError(f"step {i} {step.body!r} reads %{v} before it is computed")
        for v in step.outputs:
            if v in computed:
                raise GraphError(f"step {i} {step.body!r} computes %{v} again")
            computed.add(v)
        if id(step) in checked:
            continue
        try:
            check_step(step, steps.values)
        except RuleViolation as broken:
            raise GraphError(f"step {i} {step.body!r}: {broken}") from None
        checked[id(step)] = step  # keeps the step alive, so that its id is not reused
    for v in steps.outputs:
        if v not in computed:
            raise GraphError(f"the output %{v} is never computed")
