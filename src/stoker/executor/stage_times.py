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
    times = _Times(graph)
    if run is not None and plan is not None:
        for step, ns, waited in zip(plan.steps, run.step_times(), run.disk_waits(), strict=True):
            if not isinstance(step.body, PyCall):
                times.add_parts(THREADS, DISK, step.node, ns, waited)
        measured, device = run.device_times()
        for step, gpu_ns in zip(plan.steps, device, strict=True):
            if step.on_gpu and measured and gpu_ns:
                times.add(GPU, step.node, round(gpu_ns / measured * rows))
        for number, ns in run.python.ns.copy().items():
            times.add_parts(PYTHON, NETWORK, number, ns, _network_wait_ns(readers.get(number)))
    for number, ns in dict(source_ns).items():  # another thread may be pulling from a source for the first time
        times.add(SOURCE, number, ns)
    return times.found


def _network_wait_ns(reader: OpenSource | None) -> int:
    return sum(s.network_wait_ns for s in dict.fromkeys(reader.storages())) if reader is not None else 0


class _Times:
    """Sums of nanoseconds by (where, name, line)."""

    def __init__(self, graph: Graph) -> None:
        self.found: dict[tuple[str, str, str], int] = {}
        self._graph = graph

    def add(self, where: str, number: int, ns: int) -> None:
        """Add the time of a node."""
        node = self._graph.nodes[number] if number >= 0 else None
        line = f"{node.source_line}" if node is not None and node.source_line else ""
        key = (where, node.operator.subject(node.args) if node else "output", line)
        self.found[key] = self.found.get(key, 0) + ns

    def add_parts(self, where: str, waits: str, number: int, ns: int, waited: int) -> None:
        """Add the time of a node, and the part of it in which the node waited."""
        waited = min(waited, ns)  # the clocks are not read at the same time
        self.add(where, number, ns - waited)
        if waited:
            self.add(waits, number, waited)
