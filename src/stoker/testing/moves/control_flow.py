# SPDX-License-Identifier: Apache-2.0
"""Moves about the paths of rows: from files, frame by frame, under conditions."""

from __future__ import annotations

from typing import Any

from ...contract.types import DType
from ...frontends import fn
from ...frontends.conditionals import BranchRuntime
from ...frontends.data_node import DataNode
from ..graph_grower import FILTERS, SIZES, GraphGrower, Move, move_registrar

MOVES: list[tuple[float, Move]] = []
move = move_registrar(MOVES)


# ---- videos ----


@move(0.8)
def per_frame(g: GraphGrower) -> Any:
    x = g.choose(
        lambda v: g.layout(v)[:1] == "F" and {"H", "W"} <= set(g.layout(v)) and all(a.size for a in g.arrays(v))
    )
    frames = fn.per_frame(fn.random.uniform(range=[0, 1], shape=fn.shapes(x)[0]))
    form = g.whole(0, 3)
    if form == 0:
        return fn.rotate(x, angle=frames * 90.0, keep_size=True)
    if form == 1:
        return fn.brightness(x, brightness=frames + 0.5)
    if form == 2:
        return fn.crop_mirror_normalize(x, mirror=frames < 0.5, std=2.0, output_layout="HWC")
    return fn.flip(x, horizontal=frames < 0.5)


# ---- files ----


@move(0.5)
def peek(g: GraphGrower) -> Any:
    return fn.peek_image_shape(_encoded(g))


@move(1.0)
def decode(g: GraphGrower) -> Any:
    """Decode the same file again, for shared nodes and for windows that must not be pushed into both uses."""
    return fn.decoders.image(_encoded(g), dtype=g.pick((DType.UINT8, DType.UINT8, DType.FLOAT, DType.UINT16)))


@move(1.5)
def decode_window(g: GraphGrower) -> Any:
    data, form = _encoded(g), g.whole(0, 2)
    if form == 0:
        return fn.decoders.image_random_crop(data, random_area=(0.2, 1.0))
    if form == 1:
        return fn.decoders.image_crop(data, crop=(g.whole(1, 3), g.whole(1, 3)), crop_pos_x=g.number(0, 1))
    return fn.decoders.image_slice(data, rel_start=(g.number(0, 0.4), 0.1), rel_end=(0.9, 1.0), axes=(0, 1))


def _encoded(g: GraphGrower) -> DataNode:
    return g.choose(lambda v: bool(g.labels) and v is g.pool[0])


# ---- conditions ----


@move(2.0)
def condition(g: GraphGrower) -> Any:
    """Use an ``if`` on a number of the row.

    Its branches change an image (or leave it), possibly with another ``if``.
    """
    return _branch(g, g.image(), 2)


def _branch(g: GraphGrower, x: Any, depth: int) -> Any:
    runtime = BranchRuntime(lambda f: f)
    truth: Any = fn.random.coin_flip(probability=g.number(0, 1))
    if g.chance(0.3):
        truth = runtime.all(lambda: truth, lambda: fn.random.uniform(range=[0, 1]) < 0.7)
    elif g.chance(0.2):
        truth = runtime.invert(truth)

    def side() -> Any:
        y = x
        for _ in range(g.whole(0, 2)):
            y = _branch(g, y, depth - 1) if depth and g.chance(0.25) else _step(g, y)
        return y

    return runtime.choose(truth, side, side)


def _step(g: GraphGrower, x: Any) -> Any:
    """Apply an operator that keeps the type and the axes for any size."""
    form = g.whole(0, 5)
    if form == 0:
        return fn.flip(x, horizontal=g.number(0, 1, whole=True))
    if form == 1:
        return fn.resize(x, size=(g.pick(SIZES), g.pick(SIZES)), interp_type=g.pick(FILTERS))
    if form == 2:
        return fn.crop(
            x, crop=(g.whole(1, 6), g.whole(1, 6)), out_of_bounds_policy="trim_to_shape", crop_pos_x=g.number(0, 1)
        )
    if form == 3:
        return fn.brightness(x, brightness=g.number(0.2, 2.0))
    if form == 4:
        return fn.rotate(x, angle=g.number(-90, 90), fill_value=0)
    return fn.copy(x)
