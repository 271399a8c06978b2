# SPDX-License-Identifier: Apache-2.0
"""Rules that every graph and every list of steps obeys; run between passes in tests, and on every graph once."""

from __future__ import annotations

from ..contract.errors import GraphError
from ..contract.step import StepList
from .lower import reads
from .node import Graph, Node


def verify_graph(graph: Graph) -> None:
    """Raise GraphError if an edge points nowhere or forward, or two random calls share a draw."""
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
    """Whether two nodes are one call with lists of inputs, which shares its draws among them."""
    return (
        a.operator is b.operator and a.source == b.source and a.edges == b.edges and len(a.inputs) == len(b.inputs) > 0
    )


def verify_steps(steps: StepList) -> None:
    """Raise GraphError if a step reads a value before it is made, or a value is made twice."""
    made = set(steps.fed.values())
    for i, step in enumerate(steps.steps):
        for v in sorted(reads(step, steps) - made):
            raise GraphError(f"step {i} {step.body!r} reads %{v} before it is made")
        for v in step.outputs:
            if v in made:
                raise GraphError(f"step {i} {step.body!r} makes %{v} again")
            made.add(v)
    for v in steps.outputs:
        if v not in made:
            raise GraphError(f"the output %{v} is never made")
