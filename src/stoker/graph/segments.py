# SPDX-License-Identifier: Apache-2.0
"""Cuts steps into segments: what a row runs through on one thread, until all rows must have arrived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from ..contract.expr import leaves
from ..contract.step import Native, PyCall, Step, StepList
from .lower import reads

_GPU_LEVEL = 1 << 30  # levels from here on are the GPU's: its segments come last


class Runs(IntEnum):
    """What runs a segment, as in native/plan.hpp."""

    NATIVE = 0
    PYTHON = 1
    GPU = 2


@dataclass(frozen=True)
class Segments:
    """Segments in the order in which they run.

    Attributes:
        members: of each, what runs it and the numbers of its steps.
        of: by value, the segment that makes it; -1 for what comes before all.
    """

    members: list[tuple[Runs, list[int]]]
    of: Mapping[int, int]


def cut(steps: StepList) -> Segments:
    """Runs of rows without a barrier. Even levels are native, odd ones Python's; fed values come before all.

    The GPU's come last; steps on the CPU that read sizes of what it makes stand among its own.
    """
    level: dict[int, int] = dict.fromkeys(steps.fed.values(), -1)
    members: dict[int, list[int]] = {}
    last_impure = 1
    for i, step in enumerate(steps.steps):
        inputs = [level[v] for v in reads(step, steps) if v in level]
        if step.on_gpu or max(inputs, default=0) >= _GPU_LEVEL:
            at = max([_GPU_LEVEL, *inputs])
            at += isinstance(step.body, Native) and step.body.batch_scope
        elif isinstance(step.body, PyCall):
            at = _above(max(inputs, default=-1), parity=1)
            if not step.body.pure:  # effects happen in the order of definition
                at = last_impure = max(at, last_impure)
        elif isinstance(step.body, Native) and step.body.batch_scope:
            at = _above(max(inputs, default=-1), parity=0)
        else:
            at = max(inputs, default=0)
            at = max(0, at + at % 2)
        at = max(at, _output_level(step, steps, level))
        members.setdefault(at, []).append(i)
        level.update(dict.fromkeys(step.outputs, at))
    compact = {lv: n for n, lv in enumerate(sorted(members))}
    of = {v: compact.get(lv, -1) for v, lv in level.items()}
    return Segments([(_runs(lv), members[lv]) for lv in sorted(members)], of)


def _output_level(step: Step, steps: StepList, level: Mapping[int, int]) -> int:
    """The sizes of outputs must be known when their segment starts, so what they depend on comes before."""
    needs: set[int] = set()
    for v in set(steps.outputs).intersection(step.outputs):
        for extent in steps.values[v].shape:
            leaves(extent, needs)
    if not needs:
        return 0
    highest = max(level[n] for n in needs)
    return highest + 1 if highest >= _GPU_LEVEL else _above(highest, parity=0)


def _runs(level: int) -> Runs:
    return Runs.GPU if level >= _GPU_LEVEL else Runs.PYTHON if level % 2 else Runs.NATIVE


def _above(level: int, parity: int) -> int:
    """The smallest level of a parity that is above ``level``."""
    return level + 1 if (level + 1) % 2 == parity else level + 2
