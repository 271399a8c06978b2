# SPDX-License-Identifier: Apache-2.0
"""Planner from graph to plan: a pure function of the graph, the passes and facts about the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..contract.gpu import Target
from ..contract.operator import Operator, Spec
from .analysis import MEMORY, PASSES, PLANES, end_in_stores, require_gpu, transform
from .emit import emit
from .node import Graph
from .plan import Plan


def make_plan(
    graph: Graph,
    find: Callable[[str], type[Operator]],
    discovered: Mapping[int, tuple[Spec, ...]] | None = None,
    passes: frozenset[str] = frozenset(PASSES),
    sources: Mapping[int, Any] | None = None,
    target: Target = Target(),  # noqa: B008 - it is frozen
) -> Plan:
    """Plan ``graph`` without compiling or starting anything; ``load.load`` makes the kernels.

    Args:
        find: function that returns an operator by its qualified name.
        discovered: types of Python nodes found by a first run.
        passes: names of the passes; the plan's results do not depend on them.
        sources: opened sources by node.
        target: facts about the machine.

    Raises:
        UndeclaredTypes: a Python node's types must be found first.
        ArgumentError, UnsupportedError: lowering fails, or nodes are placed on a GPU and there is none.
    """
    steps = transform(graph, find, discovered, passes, sources, target)
    if not target.has_gpu:
        require_gpu(graph, steps)
    return emit(end_in_stores(steps), share=MEMORY in passes, planes=PLANES in passes, has_gpu=target.has_gpu)
