# SPDX-License-Identifier: Apache-2.0
"""Placement: the device of each node, and then of each step.

Nodes run on the device that the user requests, else on that of their inputs. A node on the GPU may have steps on the
CPU: headers, draws, and everything that shapes and parameters are computed from, because the run loop reads them. The
same holds for all that a step on the CPU reads: a GPU computes nothing for a CPU in the middle of a batch. Data that
GPU steps read from the CPU are sent with the batch. Outputs that belong in host memory are copied when the batch is
done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from ...contract.errors import UnsupportedError, message
from ...contract.pixel import load
from ...contract.step import Native, PyCall, Stage, Step, StepList, Value, View
from ..lower import step_expressions
from ..node import Graph
from .counts import CountsOnGpu


def place(graph: Graph) -> Mapping[int, bool]:
    """Return for every node whether its outputs belong in a GPU's memory."""
    placed: Mapping[int, bool] = graph.fact("placed", lambda: _place(graph))
    return placed


def _place(graph: Graph) -> dict[int, bool]:
    placed: dict[int, bool] = {}
    for node in graph.nodes:
        inherited = any(placed[e.node] for e in node.inputs)
        placed[node.id] = inherited if node.device is None else node.device != "cpu"
    return placed


def place_steps(steps: StepList, graph: Graph, placed: Mapping[int, bool], *, outputs_on_cpu: bool) -> StepList:
    """Return the steps with their devices.

    Args:
        outputs_on_cpu: compute all outputs on the CPU, for a step in Python that reads them.

    Raises:
        UnsupportedError: a step needs a number that a GPU counts.
    """
    if not any(placed.values()):
        return steps
    # A fed value has no step that could copy it back, so its data are fed in host memory.
    own = {*steps.fed.values(), *(v for s in steps.steps if isinstance(s.body, PyCall) for v in s.outputs)}
    outputs = zip(steps.outputs, graph.outputs, strict=True)
    on_cpu = {v for v, e in outputs if outputs_on_cpu or (v in own and not placed[e.node])}
    work = _Placing(steps, graph, placed, read_by_the_cpu(steps, placed, on_cpu))
    for step in steps.steps:
        work.place(step)
    outputs = zip(steps.outputs, graph.outputs, strict=True)
    delivered = [v if outputs_on_cpu else work.deliver(v, e.node) for v, e in outputs]
    return StepList(work.result, work.values, delivered, steps.fed, steps.readers)


class _Placing:
    def __init__(self, steps: StepList, graph: Graph, placed: Mapping[int, bool], on_host: set[int]) -> None:
        self.values = dict(steps.values)
        self.result: list[Step] = []
        self._graph = graph
        self._placed = placed
        self._on_host = on_host
        self._sent = set(steps.fed.values())  # rows may be in host memory, too
        self._counts = CountsOnGpu(self.values)
        # Data fed for the GPU may already be there. Data in host memory are sent.
        self._on_gpu = {v for (node, _), v in steps.fed.items() if placed[node] and v not in self._on_host}

    def place(self, step: Step) -> None:
        """Append the step, with copies if needed, on its device."""
        on_gpu = self._belongs_on_gpu(step)
        uncounted = self._counts.add(step, on_gpu=on_gpu)
        if uncounted is not None:
            raise self._uncounted(step, uncounted)
        if on_gpu:
            self._append_on_gpu(step)
        else:
            here = self._on_gpu.intersection((*step.inputs, *(v for v, _ in step.guards)))
            assert not here, f"step {step.body!r} on the CPU reads values {here} in the GPU's memory"
            self.result.append(step)
            if isinstance(step.body, PyCall) and step.body.operator.writes_to_gpu and self._placed[step.node]:
                self._on_gpu.update(set(step.outputs) - self._on_host)
                self._sent.update(step.outputs)

    def _belongs_on_gpu(self, step: Step) -> bool:
        body = step.body
        from_gpu = any(v in self._on_gpu for v in step.inputs)
        if isinstance(body, PyCall):
            return False
        if isinstance(body, View) or (isinstance(body, Native) and body.memory.aliases):
            return from_gpu
        wanted = step.node >= 0 and self._placed[step.node] and self._on_host.isdisjoint(step.outputs)
        if isinstance(body, Stage):
            return from_gpu or wanted
        return body.gpu is not None and (from_gpu or wanted)

    def _uncounted(self, step: Step, v: int) -> UnsupportedError:
        counted = self.values[v].counted
        maker = next(s for s in self.result if counted is not None and counted.count in s.outputs)
        name = self._graph.nodes[maker.node].operator.name
        return self._problem(
            step,
            f"it needs the first extent of what `{name}` makes, which `{name}` counts on the GPU: the number is known "
            f"when the batch is done. There, operators on single elements may follow `{name}`, and those whose pages "
            "allow such an input",
        )

    def _append_on_gpu(self, step: Step) -> None:
        body = step.body
        if isinstance(body, View) and body.may_copy:
            # On the CPU such a view copies data that are not contiguous. On the GPU a separate stage does.
            copy = self._copied(step.inputs[0], step.node, step.guards)
            step = replace(step, body=View(body.ops), inputs=(copy,))
        self.result.append(replace(step, on_gpu=True))
        self._on_gpu.update(step.outputs)

    def _copied(self, v: int, node: int, guards: tuple[tuple[int, bool], ...]) -> int:
        source = self.values[v]
        # The extents do not refer to `v`, whose step may then be joined with the copy.
        copy = Value(len(self.values), source.dtype, source.shape, source.layout)
        self.values[copy.id] = copy
        body = Stage(((load(source.dtype),),), ((),), ((),))
        self.result.append(Step(body, (v,), (copy.id,), node, guards=guards, on_gpu=True))
        self._on_gpu.add(copy.id)
        return copy.id

    def deliver(self, v: int, node: int) -> int:
        """Return the output's value, in the GPU's memory if its node was placed there."""
        if not self._placed[node] or (v in self._on_gpu and v not in self._sent):
            return v
        maker = next((s for s in self.result if v in s.outputs), None)
        return self._copied(v, node, maker.guards if maker else ())

    def _problem(self, step: Step, why: str) -> UnsupportedError:
        node = self._graph.nodes[step.node]
        hint = 'Set `device="cpu"` for it and for what comes before; the results are the same bits on every device'
        return UnsupportedError(message(node.operator.name, why, source=node.source_line, hint=hint))


def read_by_the_cpu(steps: StepList, placed: Mapping[int, bool], more: Iterable[int]) -> set[int]:
    """Return the values whose elements the run loop or steps on the CPU read, and those that they are computed from.

    Args:
        placed: by node, whether it belongs on a GPU.
        more: further values that belong in host memory.
    """

    def runs_on_cpu(step: Step) -> bool:
        if isinstance(step.body, View) or (isinstance(step.body, Native) and step.body.memory.aliases):
            return False  # they are where their inputs are
        if isinstance(step.body, Native) and step.body.gpu is None:
            return True
        return step.node >= 0 and not placed[step.node]

    return read_by_the_loop(steps, more, runs_on_cpu)


def read_by_the_loop(
    steps: StepList, more: Iterable[int] = (), reads: Callable[[Step], bool] = lambda step: False
) -> set[int]:
    """Return values whose elements the run loop reads, and the values that stages and views compute them from.

    Args:
        more: further values that are read.
        reads: return whether a step reads its inputs like the loop.
    """
    found = set(more)
    for step in reversed(steps.steps):
        for expression in step_expressions(step, steps):
            found |= expression.elements
        found.update(v for v, _ in step.guards)
        if isinstance(step.body, Native) and step.body.memory.aliases and len(step.inputs) > 1:
            found.add(step.inputs[0])  # the condition, or the row number
        if isinstance(step.body, PyCall) or reads(step) or not found.isdisjoint(step.outputs):
            found.update(step.inputs)
    return found
