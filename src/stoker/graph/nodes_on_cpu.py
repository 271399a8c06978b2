# SPDX-License-Identifier: Apache-2.0
"""Nodes that are placed on a GPU and computed on the CPU, for a warning."""

from __future__ import annotations

from collections.abc import Iterable

from ..contract.step import Native, PyCall, Stage, Step
from .node import Graph
from .passes.placement import place


def nodes_on_cpu(graph: Graph, steps: Iterable[Step]) -> dict[int, set[int]]:
    """Return the nodes that are placed on a GPU but computed on the CPU, because a node on the CPU reads them.

    Returns:
        For each such reader the nodes that it makes the CPU compute.
    """
    placed = place(graph)
    makers: dict[int, Step] = {}
    found: dict[int, set[int]] = {}

    def is_reader(step: Step) -> bool:
        is_on_cpu = isinstance(step.body, PyCall) or not placed.get(step.node, True)
        return is_on_cpu and step.node >= 0 and not step.on_gpu

    for step in steps:
        if is_reader(step):
            waiting, seen = list(step.inputs), set(step.inputs)
            while waiting:
                maker = makers.get(waiting.pop())
                if maker is None or is_reader(maker):
                    continue
                if not maker.on_gpu and maker.node >= 0 and _has_gpu_form(maker):
                    found.setdefault(step.node, set()).add(maker.node)
                waiting += (v for v in maker.inputs if v not in seen)
                seen.update(maker.inputs)
        makers.update((v, step) for v in step.outputs)
    return found


def _has_gpu_form(step: Step) -> bool:
    return isinstance(step.body, Stage) or (isinstance(step.body, Native) and step.body.gpu is not None)
