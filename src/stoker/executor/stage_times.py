# SPDX-License-Identifier: Apache-2.0
"""Where the time of a run has gone, by the user's lines."""

from __future__ import annotations

from collections.abc import Mapping

from ..contract.step import PyCall
from ..graph.node import Graph
from ..graph.plan import Plan
from .meter import Times
from .report import GPU, PYTHON, SOURCE, THREADS
from .run import Run


def stage_times(graph: Graph, plan: Plan | None, run: Run | None, rows: int, source_ns: Mapping[int, int]) -> Times:
    """Nanoseconds by (where, what, line).

    Args:
        rows: that were delivered; the GPU's time per row is measured on some of them.
        source_ns: time in the caller's sources, by node.
    """
    times: dict[tuple[str, str, str], int] = {}

    def add(where: str, number: int, ns: int) -> None:
        node = graph.nodes[number] if number >= 0 else None
        line = f"{node.source}" if node is not None and node.source else ""
        key = (where, node.operator.subject(node.args) if node else "output", line)
        times[key] = times.get(key, 0) + ns

    if run is not None and plan is not None:
        for step, ns in zip(plan.steps, run.step_times(), strict=True):
            if not isinstance(step.body, PyCall):
                add(THREADS, step.node, ns)
        measured, device = run.device_times()
        for step, gpu_ns in zip(plan.steps, device, strict=True):
            if step.on_gpu and measured and gpu_ns:
                add(GPU, step.node, round(gpu_ns / measured * rows))
        for number, ns in run.python.ns.copy().items():
            add(PYTHON, number, ns)
    for number, ns in source_ns.items():
        add(SOURCE, number, ns)
    return times
