# SPDX-License-Identifier: Apache-2.0
"""Shared code of ``stack`` and ``cat``."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ...contract import expr as ex
from ...contract.lowering import Lowering
from ...contract.pixel import Px
from ...contract.step import Value, ViewOp
from ...contract.types import DType, promote

MAX_INPUTS, MAX_CHANNELS = 8, 16  # limits of a stage


MOST_INPUTS = 64  # of a step


def joined_in_parts(c: Lowering, inputs: Sequence[Value], name: str, axis: int, axis_name: str | None) -> Value:
    """Join more inputs than a step takes: groups of them by the operator ``name``, then the groups."""
    groups = [inputs[i : i + MOST_INPUTS] for i in range(0, len(inputs), MOST_INPUTS)]
    parts = [c.apply(name, *group, axis=axis, axis_name=axis_name) for group in groups]
    return c.apply("cat", *parts, axis=axis)  # type: ignore[no-any-return]


def joined_type(inputs: Sequence[Value]) -> DType:
    """Return the type that holds all inputs."""
    return functools.reduce(promote, [x.dtype for x in inputs])


def in_numpy(c: Lowering, inputs: Sequence[Value], dtype: DType) -> Sequence[Value]:
    """Return the inputs for NumPy. bfloat16 arrays hold bits, so they are converted to ``dtype`` first."""
    mixed = any(x.dtype == DType.BFLOAT16 for x in inputs)
    return [c.cast(x, dtype) for x in inputs] if mixed else inputs


def same_extents(c: Lowering, inputs: Sequence[Value], but: int | None = None) -> None:
    """Require equal shapes, except for the axis ``but``."""
    first = inputs[0]
    for x in inputs[1:]:
        c.expect(x.rank == first.rank, "expected inputs with {0} axes, got {1}", first.rank, x.rank)
        for axis, (a, b) in enumerate(zip(first.shape, x.shape, strict=True)):
            if axis != but and not ex.same(a, b):
                text = f"expected inputs with equal extents, got {{0}} and {{1}} in axis {axis}"
                c.require(ex.equal(a, b), text, a, b)


def axis_of(c: Lowering, rank: int, layout: str) -> int:
    """Return the argument ``axis``, or the position of the axis called ``axis_name``."""
    name = c.const("axis_name")
    if name is not None and name in layout:
        return layout.index(name)
    axis = c.const("axis")
    c.expect(-rank <= axis < rank, "expected an axis in [-{0}, {0}), got {1}", rank, axis)
    return int(axis) % rank


def channelled(c: Lowering, inputs: Sequence[Value], pre: Sequence[Sequence[ViewOp]], program: Sequence[Px],
               shape: Sequence[Any], axis: int, layout: str) -> Value:  # fmt: skip
    """Emit a stage that writes one element per lane along ``axis``."""
    order = (*(i for i in range(len(shape)) if i != axis), axis)
    post = [] if axis == len(shape) - 1 else [ViewOp("permute", list=order)]
    outs = [(program[0].dtype, shape, layout)]
    return c.stage(inputs, outs, [program], pre=pre, post=[post], channels=len(program))[0]
