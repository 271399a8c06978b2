# SPDX-License-Identifier: Apache-2.0
"""Common-subexpression elimination: equal steps with equal inputs become one. Steps with effects are never merged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...contract.expr import Expr, Scalar, identity, substitute
from ...contract.pixel import Px, rewrite
from ...contract.step import Check, Counted, Interpolator, Native, PyCall, Stage, Step, StepList, Value, View, ViewOp


def merge_equal_steps(steps: StepList) -> StepList:
    """Merge steps with equal bodies, inputs and conditions."""
    renamed: dict[int, int] = {}
    known: dict[Any, Step] = {}
    keys = _Keys()
    kept: list[Step] = []
    values = dict(steps.values)
    for step in steps.steps:
        if renamed:
            step = rename(step, renamed)
            for v in step.outputs:
                values[v] = rename_value(values[v], renamed)
        if isinstance(step.body, PyCall):
            kept.append(step)
            continue
        key = keys.step(step, values)
        twin = known.get(key)
        if twin is None:
            known[key] = step
            kept.append(step)
        else:
            renamed.update(zip(step.outputs, twin.outputs, strict=True))
    if not renamed:
        return steps
    outputs = [renamed.get(v, v) for v in steps.outputs]
    return StepList(kept, values, outputs, steps.fed, steps.readers)


class _Keys:
    """Hashable keys of steps; equal steps have equal keys. Each pixel subexpression is numbered once."""

    def __init__(self) -> None:
        self._pixels: dict[Any, int] = {}

    def step(self, step: Step, values: Mapping[int, Value]) -> Any:
        types = []
        for o in (values[v] for v in step.outputs):
            # Values that a kernel allocates have symbolic extents of their own, which are equal for equal kernels.
            extents = o.rank if isinstance(step.body, Native) else tuple(map(identity, o.shape))
            bound = None if o.counted is None else identity(o.counted.max_output)
            types.append((o.dtype, o.layout, o.per_frame, extents, bound))
        frames = None if step.frames is None else identity(step.frames)
        checks = tuple((identity(c.condition), c.text, tuple(map(identity, c.values))) for c in step.checks)
        return self._body(step.body), step.inputs, step.guards, frames, checks, tuple(types), step.on_gpu

    def _body(self, body: Any) -> Any:
        if isinstance(body, View):
            return self._chain(body.ops), body.may_copy
        if isinstance(body, Native):
            return body.kernel, body.gpu, tuple(map(_attribute, body.attrs)), tuple(map(identity, body.params))
        assert isinstance(body, Stage)
        program = tuple(tuple(map(self._pixel, port)) for port in body.program)
        chains = tuple(map(self._chain, body.pre)), tuple(map(self._chain, body.post))
        interpolator = (
            (body.interpolator.kind, tuple(map(identity, body.interpolator.params))) if body.interpolator else None
        )
        return program, chains, body.channels, interpolator

    @staticmethod
    def _chain(ops: tuple[ViewOp, ...]) -> Any:
        return tuple(
            (o.kind, o.axis, *map(identity, (o.start, o.step, o.extent)), tuple(map(identity, o.list))) for o in ops
        )

    def _pixel(self, x: Px) -> int:
        operands = tuple(map(self._pixel, x.args))
        value = identity(x.value) if x.op == "uniform" else None
        return self._pixels.setdefault((x.op, x.dtype, x.port, x.channel, value, operands), len(self._pixels))


def _attribute(x: Any) -> Any:
    return x if isinstance(x, (int, float, str, bytes, tuple)) else id(x)


def rename(step: Step, renamed: dict[int, int]) -> Step:
    """Return ``step`` with the values it reads renamed."""

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
    elif isinstance(body, Stage):

        def px(x: Px) -> Px:
            return rewrite(x, lambda n: replace(n, value=number(n.value)) if n.op == "uniform" else None)

        interpolator = (
            Interpolator(body.interpolator.kind, tuple(map(number, body.interpolator.params)))
            if body.interpolator
            else None
        )
        program = tuple(tuple(px(x) for x in port) for port in body.program)
        body = Stage(program, tuple(map(chain, body.pre)), tuple(map(chain, body.post)), body.channels, interpolator)
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
    """Return ``value`` with the values in its extents renamed."""

    def number(e: Scalar) -> Scalar:
        return substitute(e, lambda leaf: _leaf(leaf, renamed)) if isinstance(e, Expr) else e

    counted = value.counted
    if counted is not None:
        counted = Counted(number(counted.max_output), renamed.get(counted.count, counted.count))
    return replace(value, shape=tuple(map(number, value.shape)), counted=counted)


def _leaf(leaf: Expr, renamed: dict[int, int]) -> Expr | None:
    new = renamed.get(leaf.args[0])
    return None if new is None else Expr(leaf.op, new, *leaf.args[1:])
