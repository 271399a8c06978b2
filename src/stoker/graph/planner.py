# SPDX-License-Identifier: Apache-2.0
"""Planner from graph to plan: a pure function of the graph, the passes and facts about the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..contract.gpu import Target
from ..contract.operator import Operator, Spec
from .analysis import MEMORY, PASSES, PLANES, apply_passes, end_in_stores, lower_and_place, require_gpu
from .emit import emit
from .node import Graph
from .nodes_on_cpu import nodes_on_cpu
from .passes.placement import place
from .plan import Plan


def make_plan(
    graph: Graph,
    find: Callable[[str], type[Operator]],
    discovered: Mapping[int, tuple[Spec, ...]] | None = None,
    passes: frozenset[str] = frozenset(PASSES),
    sources: Mapping[int, Any] | None = None,
    target: Target = Target(),  # noqa: B008 - it is frozen
    *,
    outputs_on_cpu: bool = False,
) -> Plan:
    """Plan ``graph`` without compiling or starting anything; ``load.load`` makes the kernels.

    Args:
        find: function that returns an operator by its qualified name.
        discovered: types of Python nodes found by a first run.
        passes: names of the passes; the plan's results do not depend on them.
        sources: opened sources by node.
        target: facts about the machine.
        outputs_on_cpu: compute the outputs on the CPU also where they belong to nodes on a GPU.

    Raises:
        UndeclaredTypes: a Python node's types must be found first.
        ArgumentError, UnsupportedError: lowering fails, or nodes are placed on a GPU and there is none.
    """
    steps = lower_and_place(graph, find, discovered, sources, target, outputs_on_cpu=outputs_on_cpu)
    on_cpu = {} if outputs_on_cpu or not target.places_steps else nodes_on_cpu(graph, steps.steps)
    steps = apply_passes(steps, passes, target)
    if not target.has_gpu:
        require_gpu(graph, steps)
    placed = place(graph)
    host = frozenset(i for i, e in enumerate(graph.outputs) if not placed[e.node])
    steps = end_in_stores(steps)
    return emit(
        steps, share=MEMORY in passes, planes=PLANES in passes, has_gpu=target.has_gpu, host_outputs=host, on_cpu=on_cpu
    )
