# SPDX-License-Identifier: Apache-2.0
"""Decode windows: a crop of a kernel's output becomes a request for that window only.

The pass uses one trait, ``Native.window``. A decoder with it computes no pixel outside of the crop.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ...contract.expr import is_static
from ...contract.step import Native, Step, StepList, Value, View, ViewOp
from ..lower import number_sources


def push_windows(steps: StepList) -> StepList:
    """Move slices of the first two axes into the kernels that support a window."""
    users = Counter(v for step in steps.steps for v in step.inputs)
    kept = set(steps.outputs).union(*(number_sources(step, steps) for step in steps.steps))
    values = dict(steps.values)
    result: list[Step | None] = []
    made_at: dict[int, int] = {}
    for step in steps.steps:
        at = made_at.get(step.inputs[0]) if isinstance(step.body, View) else None
        maker = result[at] if at is not None else None
        if maker is None or users[step.inputs[0]] != 1 or step.inputs[0] in kept:
            pushed: tuple[Step, ...] = (step,)
        else:
            pushed = _push(maker, step, values)
            if pushed[0] is not step:  # the kernel moves down to the position where its window is known
                assert at is not None
                result[at] = None
        for new in pushed:
            made_at.update(dict.fromkeys(new.outputs, len(result)))
            result.append(new)
    return StepList([step for step in result if step is not None], values, steps.outputs, steps.fed, steps.readers)


def _push(maker: Step, view: Step, values: dict[int, Value]) -> tuple[Step, ...]:
    """Return the maker with the view's window, then the rest of the view.

    Return only the view if it has no window that the maker supports.
    """
    body = maker.body
    assert isinstance(view.body, View)
    taken = _leading_slices(view.body.ops)
    if not isinstance(body, Native) or body.window is None or maker.guards != view.guards or not taken:
        return (view,)
    params, shape = list(body.params), list(values[maker.outputs[0]].shape)
    for op in taken:
        params[body.window[op.axis]] = params[body.window[op.axis]] + op.start
        shape[op.axis] = op.extent
    windowed = replace(maker, body=replace(body, params=tuple(params)), checks=maker.checks + view.checks)
    rest = view.body.ops[len(taken) :]
    if not rest:
        return (replace(windowed, outputs=view.outputs),)
    values[maker.outputs[0]] = replace(values[maker.outputs[0]], shape=tuple(shape))
    return windowed, replace(view, body=View(rest), checks=())


def _leading_slices(ops: tuple[ViewOp, ...]) -> list[ViewOp]:
    taken: list[ViewOp] = []
    for op in ops:
        plain = op.kind == "slice" and op.axis in (0, 1) and is_static(op.step) and op.step == 1
        if not plain or any(t.axis == op.axis for t in taken):
            break
        taken.append(op)
    return taken
