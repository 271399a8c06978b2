# SPDX-License-Identifier: Apache-2.0
"""Time of a run, by lines of the user's code."""

from __future__ import annotations

from collections.abc import Mapping

from ..contract.reader import OpenSource
from ..contract.step import PyCall
from ..graph.node import Graph
from ..graph.plan import Plan
from .meter import Times
from .report import DISK, GPU, NETWORK, PYTHON, SOURCE, THREADS
from .run import Run


def stage_times(
    graph: Graph, plan: Plan | None, run: Run | None, rows: int, source_ns: Mapping[int, int],
    readers: Mapping[int, OpenSource],
) -> Times:  # fmt: skip
    """Return nanoseconds by (where, name, line).

    Args:
        rows: number of delivered rows; the GPU's time per row is measured on some of them.
        source_ns: time in the caller's sources, by node.
        readers: opened readers, by node.
    """
    times: dict[tuple[str, str, str], int] = {}

    def add(where: str, number: int, ns: int) -> None:
        node = graph.nodes[number] if number >= 0 else None
        line = f"{node.source_line}" if node is not None and node.source_line else ""
        key = (where, node.operator.subject(node.args) if node else "output", line)
        times[key] = times.get(key, 0) + ns

    if run is not None and plan is not None:
        for step, ns, waited in zip(plan.steps, run.step_times(), run.disk_waits(), strict=True):
            if not isinstance(step.body, PyCall):
                add(THREADS, step.node, max(ns - waited, 0))
                if waited:
                    add(DISK, step.node, waited)
        measured, device = run.device_times()
        for step, gpu_ns in zip(plan.steps, device, strict=True):
            if step.on_gpu and measured and gpu_ns:
                add(GPU, step.node, round(gpu_ns / measured * rows))
        for number, ns in run.python.ns.copy().items():
            storages = dict.fromkeys(readers[number].storages()) if number in readers else ()
            waited = min(ns, sum(s.network_wait_ns for s in storages))
            add(PYTHON, number, ns - waited)
            if waited:
                add(NETWORK, number, waited)
    for number, ns in dict(source_ns).items():  # another thread may be pulling from a source for the first time
        add(SOURCE, number, ns)
    return times
