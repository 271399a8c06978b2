# SPDX-License-Identifier: Apache-2.0
"""Decode windows: a crop of something that can be made in part becomes a request for that part.

Asks one trait: ``Native.window``. A JPEG decoder with it makes no pixel outside of the crop.
"""

from __future__ import annotations

from dataclasses import replace

from ...contract.expr import is_static
from ...contract.step import Native, Step, StepList, View, ViewOp


def push_windows(steps: StepList) -> StepList:
    """Move slices of the first two axes into the kernels that take a window."""
    users: dict[int, int] = {}
    for step in steps.steps:
        for v in step.inputs:
            users[v] = users.get(v, 0) + 1
    makers = {v: i for i, step in enumerate(steps.steps) for v in step.outputs}
    result: list[Step] = list(steps.steps)
    values = dict(steps.values)
    for i, step in enumerate(steps.steps):
        if not isinstance(step.body, View) or not step.body.ops:
            continue
        source = step.inputs[0]
        maker = makers.get(source)
        if maker is None or users[source] != 1 or source in steps.outputs:
            continue
        made = result[maker]
        if not isinstance(made.body, Native) or made.body.window is None or made.guards != step.guards:
            continue
        taken = _leading_slices(step.body.ops)
        if not taken:
            continue
        # The decode moves to where its window is known; the view keeps what is left.
        params, shape = list(made.body.params), list(values[source].shape)
        for op in taken:
            params[made.body.window[op.axis]] = params[made.body.window[op.axis]] + op.start
            shape[op.axis] = op.extent
        body = replace(made.body, params=tuple(params))
        values[source] = replace(values[source], shape=tuple(shape))
        rest = tuple(op for op in step.body.ops if op not in taken)
        result[maker] = replace(made, body=View(()), inputs=(), outputs=())  # a hole
        decode = replace(made, body=body, checks=made.checks + step.checks)
        view = replace(step, body=View(rest), checks=())
        result[i] = _Pair(decode, view)  # type: ignore[call-overload]
    return StepList(list(_flatten(result)), values, steps.outputs, steps.fed, steps.readers)


def _leading_slices(ops: tuple[ViewOp, ...]) -> list[ViewOp]:
    taken: list[ViewOp] = []
    for op in ops:
        plain = op.kind == "slice" and op.axis in (0, 1) and is_static(op.step) and op.step == 1
        if not plain or any(t.axis == op.axis for t in taken):
            break
        taken.append(op)
    return taken


class _Pair:
    def __init__(self, *steps: Step) -> None:
        self.steps = steps


def _flatten(result: list[Step]) -> list[Step]:
    flat: list[Step] = []
    for item in result:
        if isinstance(item, _Pair):
            flat += item.steps
        elif item.outputs:
            flat.append(item)
    return flat
