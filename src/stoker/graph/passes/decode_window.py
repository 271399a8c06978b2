# SPDX-License-Identifier: Apache-2.0
"""Decode windows: a crop of a kernel's output becomes a request for that window only.

The pass uses one trait, ``Native.window``. A decoder with it computes no pixel outside of the crop. Pointwise stages
between the kernel and the crop, such as a cast to the decoder's type, compute the window only, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from ...contract.expr import is_static, same
from ...contract.pixel import coordinates_of, tables_of
from ...contract.step import Native, Stage, Step, StepList, Value, View, ViewOp
from ..lower import number_sources
from .fusion import may_divide_by_zero


def push_windows(steps: StepList) -> StepList:
    """Move slices of the first two axes into the kernels that support a window."""
    if not any(isinstance(step.body, Native) and step.body.window is not None for step in steps.steps):
        return steps
    users = Counter(v for step in steps.steps for v in step.inputs)
    kept = set(steps.outputs).union(*(number_sources(step, steps) for step in steps.steps))
    free = {v for v, count in users.items() if count == 1 and v not in kept}  # values with one reader
    values = dict(steps.values)
    result: list[Step | None] = []
    made_at: dict[int, int] = {}
    for step in steps.steps:
        chain = _chain_before(step, free, values, result, made_at) if isinstance(step.body, View) else []
        pushed = _push([found for at in chain if (found := result[at]) is not None], step, values)
        if pushed[-1] is not step:  # the chain moves down to the position where its window is known
            for at in chain:
                result[at] = None
        for new in pushed:
            made_at.update(dict.fromkeys(new.outputs, len(result)))
            result.append(new)
    return StepList([step for step in result if step is not None], values, steps.outputs, steps.fed, steps.readers)


def _chain_before(
    view: Step, free: set[int], values: Mapping[int, Value], result: list[Step | None], made_at: Mapping[int, int]
) -> list[int]:
    """Return the positions of a kernel and of the pointwise stages between it and a view, in order; [] if there are
    none.
    """
    chain: list[int] = []
    step = view
    while step.inputs and step.inputs[0] in free and (at := made_at.get(step.inputs[0])) is not None:
        maker = result[at]
        if maker is None:
            break
        chain.insert(0, at)
        if isinstance(maker.body, Native):
            return chain
        if not _is_pointwise(maker, view, values):
            break
        step = maker
    return []


def _is_pointwise(step: Step, view: Step, values: Mapping[int, Value]) -> bool:
    """Return whether a step computes each element from the element of its only input at the same position, so that a
    view of its output needs only that view of its input.
    """
    body = step.body
    if not isinstance(body, Stage) or body.interpolator is not None or len(step.inputs) != 1 or len(step.outputs) != 1:
        return False
    if any(body.pre) or any(body.post) or step.frames is not None:
        return False
    if step.guards != view.guards or step.on_gpu != view.on_gpu:
        return False
    program = [x for port in body.program for x in port]
    if coordinates_of(program) or tables_of(program) or may_divide_by_zero(body):
        return False
    taken, made = values[step.inputs[0]], values[step.outputs[0]]
    # A stage with channels may change the last axis.
    return made.rank == taken.rank > 2 and all(same(a, b) for a, b in zip(taken.shape[:2], made.shape[:2], strict=True))


def _push(chain: list[Step], view: Step, values: dict[int, Value]) -> tuple[Step, ...]:
    """Return a kernel with the view's window, the stages that follow it, and the rest of the view.

    Return only the view if it has no window that the kernel supports.
    """
    assert not chain or isinstance(view.body, View)
    taken = _leading_slices(view.body.ops) if isinstance(view.body, View) else []
    body = chain[0].body if chain else None
    if not isinstance(body, Native) or body.window is None or chain[0].guards != view.guards or not taken:
        return (view,)
    params = list(body.params)
    for op in taken:
        params[body.window[op.axis]] = params[body.window[op.axis]] + op.start
    checks = tuple(check for step in (*chain, view) for check in step.checks)
    chain = [
        replace(chain[0], body=replace(body, params=tuple(params)), checks=checks),
        *(replace(stage, checks=()) for stage in chain[1:]),
    ]
    assert isinstance(view.body, View)
    rest = view.body.ops[len(taken) :]
    if not rest:
        chain[-1] = replace(chain[-1], outputs=view.outputs)
    for step in chain:
        if step.outputs != view.outputs:
            value = values[step.outputs[0]]
            shape = list(value.shape)
            for op in taken:
                shape[op.axis] = op.extent
            values[value.id] = replace(value, shape=tuple(shape))
    return (*chain, replace(view, body=View(rest), checks=())) if rest else tuple(chain)


def _leading_slices(ops: tuple[ViewOp, ...]) -> list[ViewOp]:
    taken: list[ViewOp] = []
    for op in ops:
        plain = op.kind == "slice" and op.axis in (0, 1) and is_static(op.step) and op.step == 1
        if not plain or any(t.axis == op.axis for t in taken):
            break
        taken.append(op)
    return taken
