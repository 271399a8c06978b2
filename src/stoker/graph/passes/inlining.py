# SPDX-License-Identifier: Apache-2.0
"""Inlining: a kernel on a GPU computes inputs in registers, which a stage would write to memory for it.

The pass uses one trait, ``Native.inlining``. Stages without an interpolator or channels, which store through no views
and which only this kernel reads, become the kernel's program (``Native.inlined``), with the other inputs of the kind as
loads. Long programs stay stages: a kernel has the program several times, and their own time exceeds that of memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ...contract.pixel import Px, coordinates_of, load, rewrite, visit
from ...contract.step import MAX_PORTS, InlinedProgram, Native, OwnKernel, Stage, Step, StepList, ViewOp
from ...contract.types import DType
from ..lower import number_sources
from .tiles import with_steps

MAX_WEIGHT = 160  # of a program: operations, each function in double as many as it takes instructions, divided by four
_FUNCTION = 25
_FUNCTIONS = frozenset(
    ["fmod", "pow", "cbrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
     "tanh", "asinh", "acosh", "atanh", "atan2", "normal"]
)  # fmt: skip
_RANKS = (2, 3)


def inline_programs(steps: StepList) -> StepList:
    """Inline all programs that kernels on a GPU can compute."""
    if not any(isinstance(step.body, Native) and step.body.inlining is not None for step in steps.steps):
        return steps
    work = _Work(steps)
    for number in range(len(steps.steps)):
        work.inline(number)
    return with_steps(steps, work.result)


class _Work:
    def __init__(self, steps: StepList) -> None:
        self.list = steps
        self.result: list[Step | None] = list(steps.steps)
        self.maker = {v: i for i, step in enumerate(steps.steps) for v in step.outputs}
        self.users = Counter(v for step in steps.steps for v in (*step.inputs, *(g for g, _ in step.guards)))
        self.kept = set(steps.outputs).union(*(number_sources(step, steps) for step in steps.steps))

    def inline(self, number: int) -> None:
        """Put the stages that compute inputs of a step into the step."""
        step = self.list.steps[number]
        body = step.body
        if not isinstance(body, Native) or body.inlining is None or step.frames is not None or not step.on_gpu:
            return
        if body.gpu is None or not isinstance(body.gpu.kernel, OwnKernel) or body.gpu.kernel.fault:
            return  # the native kernel either has a program or may fail rows
        first = len(step.inputs) - body.inlining.count
        computed = step.inputs[first:]
        makers = [self._stage_of(v, step, computed) for v in computed]
        found = next((v for v, m in zip(computed, makers, strict=True) if m is not None), None)
        if found is None or len({self.list.values[v].rank for v in computed}) > 1:
            return
        program = _Program()
        for v, m in zip(computed, makers, strict=True):
            program.add(v, m, None if m is None else self.list.steps[m])
        if not program.fits():
            return
        inlined = InlinedProgram(tuple(program.outputs), tuple(program.pre), self.list.values[found].shape)
        gone = sorted({m for m in makers if m is not None})
        checks = tuple(check for m in gone for check in self.list.steps[m].checks) + step.checks
        inputs = (*step.inputs[:first], *program.inputs)
        self.result[number] = replace(step, body=replace(body, inlined=inlined), inputs=inputs, checks=checks)
        for m in gone:
            self.result[m] = None

    def _stage_of(self, value: int, reader: Step, computed: Sequence[int]) -> int | None:
        """Return the stage that makes ``value`` if ``reader`` can compute it; None otherwise."""
        number = self.maker.get(value)
        step = None if number is None else self.list.steps[number]
        if step is None or not isinstance(step.body, Stage) or step.frames is not None or not step.on_gpu:
            return None
        body = step.body
        if body.interpolator is not None or body.channels or any(body.post) or step.guards != reader.guards:
            return None
        for v in step.outputs:
            if v in self.kept or self.users[v] != computed.count(v) or v in reader.inputs[: -len(computed)]:
                return None
        made = self.list.values[value]
        return number if made.rank in _RANKS and made.dtype == DType.FLOAT else None


class _Program:
    """Program of a kernel, as it is collected from stages and loads."""

    def __init__(self) -> None:
        self.outputs: list[tuple[Px, ...]] = []
        self.inputs: list[int] = []
        self.pre: list[tuple[ViewOp, ...]] = []
        self._first: dict[int, int] = {}  # first port of each stage's inputs
        self._memos: dict[int, dict[int, Px]] = {}

    def add(self, value: int, number: int | None, step: Step | None) -> None:
        """Add an output: what stage ``number`` computes as ``value``, or a load."""
        if step is None or number is None:
            self.outputs.append((load(DType.FLOAT, self._input(value, ())),))
            return
        body = step.body
        assert isinstance(body, Stage)
        if number not in self._first:
            self._first[number] = len(self.inputs)
            for v, ops in zip(step.inputs, body.pre, strict=True):
                self._input(v, ops)
        first = self._first[number]

        def moved(x: Px) -> Px | None:
            return replace(x, port=first + x.port) if x.op in ("load", "table") else None

        expression = body.program[step.outputs.index(value)][0]
        self.outputs.append((rewrite(expression, moved, self._memos.setdefault(number, {})),))

    def fits(self) -> bool:
        """Return whether the program is short enough, and divides no integers, of which a kernel reports no fault."""
        outputs = [x for (x,) in self.outputs]
        if len(self.inputs) + len(coordinates_of(outputs)) > MAX_PORTS:
            return False
        weight: Counter[str] = Counter()
        seen: set[int] = set()
        for x in outputs:
            visit(x, lambda n: weight.update([n.op]), seen)
        if weight["idiv"] or weight["mod"]:
            return False
        return sum(n * (_FUNCTION if op in _FUNCTIONS else 1) for op, n in weight.items()) <= MAX_WEIGHT

    def _input(self, value: int, ops: tuple[ViewOp, ...]) -> int:
        self.inputs.append(value)
        self.pre.append(ops)
        return len(self.inputs) - 1
