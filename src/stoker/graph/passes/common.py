# SPDX-License-Identifier: Apache-2.0
"""Common steps: what is computed twice from the same inputs is computed once. Effects are never merged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...contract.expr import Expr, substitute
from ...contract.pixel import Px, rewrite
from ...contract.step import Check, Native, PyCall, Sampler, Stage, Step, StepList, Value, View, ViewOp


def merge_common(steps: StepList) -> StepList:
    """Steps with equal bodies, inputs and conditions become one."""
    renamed: dict[int, int] = {}
    known: dict[str, Step] = {}
    kept: list[Step] = []
    values = dict(steps.values)
    for step in steps.steps:
        step = rename(step, renamed) if renamed else step
        for v in step.outputs:
            values[v] = rename_value(values[v], renamed)
        if isinstance(step.body, PyCall) or (isinstance(step.body, Native) and not step.body.pure):
            kept.append(step)
            continue
        outs = [values[v] for v in step.outputs]
        types = [
            (o.dtype, o.layout, o.per_frame, o.shape if not isinstance(step.body, Native) else o.rank) for o in outs
        ]
        key = repr((step.body, step.inputs, step.guards, step.frames, step.checks, types))
        twin = known.get(key)
        if twin is None:
            known[key] = step
            kept.append(step)
        else:
            renamed.update(zip(step.outputs, twin.outputs, strict=True))
    outputs = [renamed.get(v, v) for v in steps.outputs]
    return StepList(kept, values, outputs, steps.fed, steps.readers)


def rename(step: Step, renamed: dict[int, int]) -> Step:
    """``step`` reading other values."""

    def number(x: Any) -> Any:
        return substitute(x, lambda leaf: _leaf(leaf, renamed)) if isinstance(x, Expr) else x

    def chain(ops: tuple[ViewOp, ...]) -> tuple[ViewOp, ...]:
        return tuple(
            replace(
                o, start=number(o.start), step=number(o.step), extent=number(o.extent), list=tuple(map(number, o.list))
            )
            for o in ops
        )

    body = step.body
    if isinstance(body, View):
        body = replace(body, ops=chain(body.ops))
    elif isinstance(body, Native):
        body = replace(body, params=tuple(map(number, body.params)))
        if body.kernel == "other_row":
            body = replace(body, attrs=(renamed.get(body.attrs[0], body.attrs[0]),))
    elif isinstance(body, Stage):

        def px(x: Px) -> Px:
            return rewrite(x, lambda n: replace(n, value=number(n.value)) if n.op == "uniform" else None)

        sampler = Sampler(body.sampler.kind, tuple(map(number, body.sampler.params))) if body.sampler else None
        program = tuple(tuple(px(x) for x in port) for port in body.program)
        body = Stage(program, tuple(map(chain, body.pre)), tuple(map(chain, body.post)), body.channels, sampler)
    checks = tuple(Check(number(c.condition), c.text, tuple(map(number, c.values)), c.node) for c in step.checks)
    return replace(
        step,
        body=body,
        inputs=tuple(renamed.get(v, v) for v in step.inputs),
        guards=tuple((renamed.get(v, v), w) for v, w in step.guards),
        checks=checks,
        frames=number(step.frames),
    )


def rename_value(value: Value, renamed: dict[int, int]) -> Value:
    """``value`` with extents that follow from other values."""
    shape = tuple(substitute(e, lambda leaf: _leaf(leaf, renamed)) if isinstance(e, Expr) else e for e in value.shape)
    return replace(value, shape=shape)


def _leaf(leaf: Expr, renamed: dict[int, int]) -> Expr | None:
    new = renamed.get(leaf.args[0])
    return None if new is None else Expr(leaf.op, new, *leaf.args[1:])
