# SPDX-License-Identifier: Apache-2.0
"""Moves on arrays of any kind: arithmetic, axes, draws, filled tensors, Python functions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ... import math
from ...contract.types import DType
from ...frontends import fn
from ..graph_grower import ANY, GraphGrower, Move, move_registrar

MOVES: list[tuple[float, Move]] = []
move = move_registrar(MOVES)


# ---- arithmetic ----

_OPERATORS: Sequence[Callable[[Any, Any], Any]] = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.and_,
    operator.or_, operator.xor, operator.lt, operator.le, operator.eq, operator.ne, operator.gt, math.min, math.max,
)  # fmt: skip


@move(2.5)
def arithmetic_with_number(g: GraphGrower) -> Any:
    number = (
        g.pick((1, 2, 3, 255, -7, 0.5, 1.0, -2.25, 100.0)) if g.chance(0.6) else g.number(1, 50, whole=g.chance(0.5))
    )
    x, op = g.array(), g.pick(_OPERATORS)
    return op(x, number) if g.chance(0.8) else op(number, x)


@move(1.5)
def arithmetic_of_two(g: GraphGrower) -> Any:
    """Combine values of equal shapes, a value with a part of itself (broadcast), or any two values."""
    x, op = g.array(), g.pick(_OPERATORS)
    shapes = [a.shape for a in g.arrays(x)]
    form = g.whole(0, 2)
    if form == 0:
        y = g.choose(lambda v: [a.shape for a in g.arrays(v)] == shapes)
    elif form == 1 and shapes[0]:
        y = fn.slice(x, axes=(g.whole(0, len(shapes[0]) - 1),), start=0, shape=1)
    else:
        y = g.array()
    return op(x, y) if g.chance(0.5) else op(y, x)


@move(0.8)
def function(g: GraphGrower) -> Any:
    x = g.array()
    form = g.whole(0, 6)
    if form == 0:
        return -x
    if form == 1:
        return abs(x)
    if form == 2:
        return ~x
    if form == 3:
        return math.clamp(x, g.number(0, 20), 120)
    return g.pick((math.sqrt, math.floor, math.ceil, math.fabs, math.sin, math.atan, math.tanh))(x)


# ---- axes ----


@move(1.0)
def transpose(g: GraphGrower) -> Any:
    x = g.array()
    rank = len(g.arrays(x)[0].shape)
    order = [int(i) for i in g.rng.permutation(rank)]
    return fn.transpose(x, perm=order, transpose_layout=g.chance(0.7))


@move(0.8)
def reshape(g: GraphGrower) -> Any:
    x = g.array()
    form = g.whole(0, 3)
    if form == 0:
        return fn.reshape(x, shape=(-1,))
    if form == 1:
        rank = len(g.arrays(x)[0].shape)
        layout = g.pick(("HWC", "CHW")) if rank == 3 else "ABDEIJK"[:rank]
        return fn.reshape(x, layout=layout)
    if form == 2 and all(a.size for a in g.arrays(x)):
        return fn.reshape(x, rel_shape=[1.0, -1.0])
    return fn.reshape(x, src_dims=[1, 0] if g.chance(0.5) else [0, 1, -1, 2])


@move(0.6)
def axes(g: GraphGrower) -> Any:
    x = g.array()
    rank = len(g.arrays(x)[0].shape)
    ones = [i for i in range(rank) if all(a.shape[i] == 1 for a in g.arrays(x))]
    if ones and g.chance(0.6):
        return fn.squeeze(x, axes=(g.pick(ones),))
    return fn.expand_dims(x, axes=(g.whole(0, rank),))


@move(1.2)
def index(g: GraphGrower) -> Any:
    x = g.choose(lambda v: all(a.size for a in g.arrays(v)) and g.arrays(v)[0].ndim > 0)
    rank = g.arrays(x)[0].ndim
    items: list[Any] = []
    for axis in range(g.whole(1, rank)):
        n = min(a.shape[axis] for a in g.arrays(x))
        form = g.whole(0, 5)
        if form == 0:
            items.append(g.whole(-n, n - 1))
        elif form == 1 and n > 1:
            items.append(slice(g.number(0, n - 1, whole=True), None, g.pick((1, 2, 3))))
        elif form == 2:
            items.append(slice(None, None, g.pick((-1, -1, 2, -2))))
        elif form == 3:
            items.append(slice(g.whole(-n - 2, n), g.whole(-n, n + 2)))
        elif form == 4 and axis == 0:
            items.append(g.number(0, n - 1, whole=True))
        else:
            items.append(slice(None))
    return x[tuple(items)]


@move(0.8)
def joined(g: GraphGrower) -> Any:
    x = g.choose(lambda v: g.arrays(v)[0].ndim > 0)
    others = [
        g.choose(
            lambda v: g.dtype(v) == g.dtype(x) and [a.shape for a in g.arrays(v)] == [a.shape for a in g.arrays(x)]
        )
        for _ in range(g.whole(1, 2))
    ]
    rank = g.arrays(x)[0].ndim
    if g.chance(0.5):
        return fn.cat(x, *others, axis=g.whole(0, rank - 1))
    return fn.stack(x, *others, axis=g.whole(0, rank))


@move(0.6)
def masked(g: GraphGrower) -> Any:
    """Keep the elements above a number, or, where a mask has another length, fail."""
    x = g.choose(lambda v: g.arrays(v)[0].ndim > 0)
    scores = g.choose(lambda v: g.arrays(v)[0].ndim == 1) if g.chance(0.5) else x
    for _ in range(g.arrays(scores)[0].ndim - 1):
        scores = fn.reductions.max(scores, axes=(1,))
    return fn.boolean_mask(x, scores > g.number(0, 90))


# ---- numbers, filled tensors ----


@move(0.5)
def draw(g: GraphGrower) -> Any:
    shape = [g.number(1, 5, whole=True) for _ in range(g.whole(0, 2))]
    form = g.whole(0, 3)
    more: dict[str, Any] = {"shape": shape} if shape else {}
    if g.chance(0.2):
        more["seed"] = g.whole(0, 1 << 40)
    if form == 0:
        return fn.random.coin_flip(probability=g.number(0, 1), **more)
    if form == 1:
        return fn.random.uniform(
            range=[g.number(-5, 0), g.number(1, 255)], dtype=g.pick((DType.FLOAT, DType.UINT8)), **more
        )
    if form == 2:
        return fn.random.normal(mean=g.number(-5, 5), stddev=g.number(0.1, 3), **more)
    return fn.random.choice(g.whole(2, 9) if g.chance(0.5) else g.choose(lambda v: len(g.least_shape(v)) > 0), **more)


@move(0.5)
def drawn_like(g: GraphGrower) -> Any:
    return g.pick((fn.random.uniform, fn.random.coin_flip))(g.array())


@move(0.5)
def filled(g: GraphGrower) -> Any:
    form = g.whole(0, 3)
    if form == 0:
        return fn.zeros_like(g.array(), dtype=g.pick(ANY))
    if form == 1:
        return fn.full_like(g.array(), g.number(0, 90, whole=g.chance(0.5)))
    if form == 2:
        return fn.ones(shape=[g.number(1, 4, whole=True), 3], dtype=g.pick(ANY))
    return fn.full(g.choose(lambda v: g.arrays(v)[0].ndim < 2), shape=[g.whole(1, 3), *g.least_shape(g.array())[:1]])


@move(0.4)
def shapes(g: GraphGrower) -> Any:
    return fn.shapes(g.array())


@move(0.3)
def copy(g: GraphGrower) -> Any:
    return fn.copy(g.array())


@move(0.3)
def shuffled(g: GraphGrower) -> Any:
    """Return another row's data. These are the only moves whose results depend on the batch."""
    return fn.permute_batch(g.array(), indices=fn.batch_permutation() if g.chance(0.5) else fn.random.choice(2))


def halve(x: Any) -> Any:
    """Halve the values, as a user's function."""
    return (x // 2).astype(x.dtype) if x.dtype.kind in "iu" else x * x.dtype.type(0.5)


def jitter(x: Any, rng: Any) -> tuple[Any, Any]:
    """Return two outputs with random numbers, as a user's function."""
    number = np.float32(rng.uniform())
    return (x > number * 9).astype(np.uint8), number


def total(rows: list[Any]) -> list[Any]:
    """Sum the values for all rows of a batch, as a user's function."""
    return [np.asarray(x.size, np.int32) for x in rows]


@move(1.0)
def python_function(g: GraphGrower) -> Any:
    x, form = g.array(), g.whole(0, 3)
    if form == 0:
        return fn.python_function(x, function=jitter, num_outputs=2)
    if form == 1:
        return fn.python_function(x, function=total, batch_processing=True)
    if form == 2:
        rank = g.arrays(x)[0].ndim
        return fn.python_function(x, function=halve, output_dtypes=g.dtype(x), output_ndims=rank)
    return fn.python_function(x, function=halve, output_layouts=g.layout(x) if "?" not in g.layout(x) else None)
