# SPDX-License-Identifier: Apache-2.0
"""Segmentation: cuts steps into runs that a row passes on one thread, ending where all rows must have arrived."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from ..contract.expr import leaves
from ..contract.step import Native, PyCall, Step, StepList
from .lower import reads

_GPU_LEVEL = 1 << 30  # levels from here on belong to the GPU, whose segments come last


class SegmentKind(IntEnum):
    """Kind of a segment, as in native/plan/plan.hpp."""

    NATIVE = 0
    PYTHON = 1
    GPU = 2


@dataclass(frozen=True)
class Segments:
    """Segments in the order in which they run.

    Attributes:
        members: kind and step numbers of each segment.
        of: number of the segment that makes each value; -1 for values from before the first segment.
    """

    members: list[tuple[SegmentKind, list[int]]]
    of: Mapping[int, int]


def cut(steps: StepList) -> Segments:
    """Cut steps into segments without a barrier inside.

    Even levels are native, odd ones Python. Fed values come before all. GPU segments come last; CPU steps that read
    sizes of GPU outputs are among them.
    """
    level: dict[int, int] = dict.fromkeys(steps.fed.values(), -1)
    members: dict[int, list[int]] = {}
    last_impure = 1
    for i, step in enumerate(steps.steps):
        inputs = [level[v] for v in reads(step, steps) if v in level]
        if step.on_gpu or max(inputs, default=0) >= _GPU_LEVEL:
            at = max([_GPU_LEVEL, *inputs])
            at += _takes_other_rows(step)
        elif isinstance(step.body, PyCall):
            at = _above(max(inputs, default=-1), parity=1)
            if not step.body.pure:  # steps with effects run in the order of definition
                at = last_impure = max(at, last_impure)
        elif _takes_other_rows(step):
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


def _takes_other_rows(step: Step) -> bool:
    return isinstance(step.body, Native) and step.body.other_rows_of is not None


def _output_level(step: Step, steps: StepList, level: Mapping[int, int]) -> int:
    """Return the level of a step that writes outputs. Their sizes must be known before its segment starts."""
    needs: set[int] = set()
    for v in set(steps.outputs).difference(steps.placed).intersection(step.outputs):
        for extent in steps.values[v].reserved:
            leaves(extent, needs)
    if not needs:
        return 0
    highest = max(level[n] for n in needs)
    return highest + 1 if highest >= _GPU_LEVEL else _above(highest, parity=0)


def _runs(level: int) -> SegmentKind:
    return SegmentKind.GPU if level >= _GPU_LEVEL else SegmentKind.PYTHON if level % 2 else SegmentKind.NATIVE


def _above(level: int, parity: int) -> int:
    """Return the smallest level of the given parity that is above ``level``."""
    return level + 1 if (level + 1) % 2 == parity else level + 2
