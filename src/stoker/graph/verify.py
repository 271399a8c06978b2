# SPDX-License-Identifier: Apache-2.0
"""Rules that every graph and every list of steps obeys; run between passes in tests, and on every graph once."""

from __future__ import annotations

from ..contract.errors import GraphError
from ..contract.step import StepList
from .node import Graph


def verify_graph(graph: Graph) -> None:
    """Raise GraphError if an edge points nowhere or forward, or two random nodes share a draw."""
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
            if node.draw in draws:
                raise GraphError(f"nodes {draws[node.draw]} and {i} share draw {node.draw}")
            draws[node.draw] = i
    for edge in graph.outputs:
        if not 0 <= edge.node < len(graph.nodes) or not 0 <= edge.output < graph.nodes[edge.node].outputs:
            raise GraphError(f"the pipeline returns {edge}, which does not exist")


def verify_steps(steps: StepList) -> None:
    """Raise GraphError if a step reads a value before it is made, or a value is made twice."""
    made = set(steps.fed.values())
    for i, step in enumerate(steps.steps):
        for v in (*step.inputs, *(g for g, _ in step.guards)):
            if v not in made:
                raise GraphError(f"step {i} {step.body!r} reads %{v} before it is made")
        for v in step.outputs:
            if v in made:
                raise GraphError(f"step {i} {step.body!r} makes %{v} again")
            made.add(v)
    for v in steps.outputs:
        if v not in made:
            raise GraphError(f"the output %{v} is never made")
