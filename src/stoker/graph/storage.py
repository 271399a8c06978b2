# SPDX-License-Identifier: Apache-2.0
"""Memory assignment of a plan's values: scratch, batch, output, device, or inside another value."""

from __future__ import annotations

from collections.abc import Mapping

from ..contract.expr import leaves
from ..contract.step import Native, Stage, Step, StepList, View, counts_of
from ..contract.types import DType
from .lower import reads
from .passes.memory import last_uses, share_buffers
from .segments import SegmentKind, Segments


def aliases(step: Step) -> bool:
    """Return whether the step's outputs are views of its inputs' memory."""
    return isinstance(step.body, View) or (isinstance(step.body, Native) and step.body.memory.aliases)


def assign_memory(
    steps: StepList, segments: Segments, *, share: bool, in_planes: frozenset[int] = frozenset()
) -> tuple[int, dict[int, tuple[str, int]]]:
    """Return the number of scratch buffers of a thread, and each value's kind of memory with its buffer or output.

    Args:
        share: whether values reuse the buffers of values that no later step needs.
        in_planes: see :func:`images_in_planes`.
    """
    where: dict[int, tuple[str, int]] = dict.fromkeys(steps.fed.values(), ("input", 0))
    on_gpu = {v for s in steps.steps if s.on_gpu for v in s.outputs}
    roots = _alias_roots(steps)
    crossing = _crossing(steps, segments, roots)
    sent = _sent(steps, roots) - on_gpu
    turned = _turned(steps)
    slots = {v: slot for slot, v in enumerate(steps.outputs) if v not in steps.placed}
    counts = [v for s in steps.steps if s.on_gpu for v in sorted(counts_of(s, steps.values))]

    def outside_of_scratch(v: int, step: Step, runs: SegmentKind) -> tuple[str, int] | None:
        if v in slots:
            return "output", slots[v]
        if v in counts:
            return "count", counts.index(v)
        if aliases(step) and not (isinstance(step.body, View) and step.body.may_copy):
            return "alias", 0
        if v in on_gpu:
            return "words" if v in turned else "planes" if v in in_planes else "device", 0
        if v in sent:
            return "upload", 0
        return ("batch", 0) if runs is SegmentKind.PYTHON or v in crossing else None

    most = 0
    for n, (runs, members) in enumerate(segments.members):
        order = [(tuple(reads(steps.steps[i], steps)), steps.steps[i].outputs) for i in members]
        order.append((tuple(v for v in steps.placed if segments.of[v] == n), ()))  # the run loop takes them at the end
        lives = last_uses(order, roots)
        places = {v: outside_of_scratch(v, steps.steps[i], runs) for i in members for v in steps.steps[i].outputs}
        where.update({v: place for v, place in places.items() if place is not None})
        buffers, count = share_buffers({v: lives[v] for v, place in places.items() if place is None}, share)
        where.update({v: ("scratch", b) for v, b in buffers.items()})
        most = max(most, count)
    return most, where


def used_values(steps: StepList) -> list[int]:
    """Return the values of a plan, in order."""
    used = set(steps.fed.values()) | set(steps.outputs)
    for step in steps.steps:
        used |= {*step.inputs, *step.outputs, *reads(step, steps)}
    return sorted(used)


def _alias_roots(steps: StepList) -> dict[int, tuple[int, ...]]:
    """Return the values that each view (or row selection) refers to."""
    roots: dict[int, tuple[int, ...]] = {}
    for step in steps.steps:
        if aliases(step):
            for v in step.outputs:
                roots[v] = step.inputs
        elif isinstance(step.body, Native) and step.body.memory.passes_on:
            roots[step.outputs[0]] = step.inputs[:1]
    return roots


def images_in_planes(steps: StepList) -> frozenset[int]:
    """Return images that are decoded to component planes and never stored as pixels: only one stage resamples them.

    That stage converts to pixels as it loads, a few times per pixel. An interpolator with coordinates of its own would
    convert each pixel for each of its reads, so it does not qualify.
    """
    decoded: set[int] = set()
    readers: dict[int, list[bool]] = {}
    for step in steps.steps:
        body = step.body
        if isinstance(body, Native) and body.gpu and body.gpu.in_planes and step.on_gpu and step.frames is None:
            decoded.update(step.outputs[:1])
        stage = body if isinstance(body, Stage) and step.on_gpu and step.frames is None else None
        resamples = stage is not None and stage.interpolator is not None and stage.interpolator.kind == "resample"
        for n, v in enumerate(step.inputs):
            readers.setdefault(v, []).append(resamples and n == 0)
    return frozenset(v for v in decoded.difference(steps.outputs) if readers.get(v) == [True])


def _turned(steps: StepList) -> set[int]:
    """Return byte images that a GPU stage computes and only warping GPU stages read.

    A thread of such a stage reads four scattered pixels. Each read is fastest if a pixel is one word.
    """
    computed: set[int] = set()
    read: set[int] = set()
    others = set(steps.outputs)
    for step in steps.steps:
        stage = step.body if isinstance(step.body, Stage) and step.on_gpu and step.frames is None else None
        turns = stage is not None and stage.interpolator is not None and stage.interpolator.kind == "affine"
        computed.update(step.outputs if stage is not None and not stage.reshapes else ())
        read.update(step.inputs[:1] if turns else ())
        others.update(step.inputs[1:] if turns else step.inputs)
    return {v for v in computed & read - others if steps.values[v].dtype is DType.UINT8 and steps.values[v].rank == 3}


def _sent(steps: StepList, roots: Mapping[int, tuple[int, ...]]) -> set[int]:
    """Return the values that GPU steps read, directly or through a view."""
    return _shown([v for s in steps.steps if s.on_gpu for v in s.inputs], roots)


def _crossing(steps: StepList, segments: Segments, roots: Mapping[int, tuple[int, ...]]) -> set[int]:
    """Return the values that a later segment reads, directly or through a view."""
    todo: list[int] = []
    for n, (_, members) in enumerate(segments.members):
        for i in members:
            step = steps.steps[i]
            todo += [v for v in reads(step, steps) if segments.of.get(v, n) < n]
            if isinstance(step.body, Native) and step.body.other_rows_of is not None:
                todo.append(step.inputs[step.body.other_rows_of])
    for v in set(steps.outputs).difference(steps.placed):
        needs: set[int] = set()
        for extent in steps.values[v].reserved:
            leaves(extent, needs)
        todo += [need for need in needs if segments.of.get(need, 0) < segments.of[v]]
    return _shown(todo, roots)


def _shown(todo: list[int], roots: Mapping[int, tuple[int, ...]]) -> set[int]:
    """Return the values, and all values that they are views of."""
    found: set[int] = set()
    while todo:
        v = todo.pop()
        if v not in found:
            found.add(v)
            todo += roots.get(v, ())
    return found
