# SPDX-License-Identifier: Apache-2.0
"""The moves of random graphs: how the operators are used, with arguments constant and per row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..frontends import fn
from ..frontends.registry import names
from ..contract.types import DType, InterpType
from .graphs import PIXELS, Garden, Move, _source

_MOVES: list[tuple[float, tuple[str, ...], Move]] = []
_SIZES = (1, 2, 3, 5, 7, 8, 11)


def move(*needs: str, weight: float = 1.0) -> Callable[[Move], Move]:
    """Declare a move that uses the operators ``needs``."""

    def declare(function: Move) -> Move:
        _MOVES.append((weight, needs, function))
        return function

    return declare


def known_moves() -> Sequence[tuple[float, Move]]:
    """The moves, with their weights."""
    known = set(names())
    return [(w, f) for w, needs, f in _MOVES if known.issuperset(needs)]


move(weight=0.7)(_source)


@move("crop", weight=1.5)
def _crop(g: Garden) -> Any:
    x = g.image()
    args: dict[str, Any] = {"crop_pos_x": g.number(0, 1), "crop_pos_y": g.number(0, 1)}
    height, width = g.least(x, "H"), g.least(x, "W")
    form = g.whole(0, 3)
    if form == 0:
        args["crop"] = (g.whole(1, height), g.whole(1, width))
    elif form == 1:
        args["crop_h"] = g.number(1, height)
        args["crop_w"] = g.number(1, width, whole=True)
    elif form == 2:
        args |= {"crop": (g.whole(1, height + 4), g.whole(1, width + 4)), "out_of_bounds_policy": "trim_to_shape"}
    else:
        args["crop_w"] = g.whole(1, width)
    if g.chance(0.2):
        args["dtype"] = g.pick(PIXELS)
    if g.chance(0.2):
        args["rounding"] = "truncate"
    return fn.crop(x, **args)


@move("slice")
def _slice(g: Garden) -> Any:
    x = g.choose(lambda v: len(g.layout(v)) > 0 and all(a.size for a in g.arrays(v)))
    axis = g.whole(0, len(g.layout(x)) - 1)
    n = min(a.shape[axis] for a in g.arrays(x))
    args: dict[str, Any] = {"axes": (axis,)}
    form = g.whole(0, 3)
    if form == 0:
        args["rel_start"] = g.number(0, 0.5)
        args["rel_end"] = g.number(0.5, 1)
    elif form == 1:
        start = g.whole(0, n - 1)
        args |= {"start": g.number(0, start, whole=True), "shape": g.number(0, n - start, whole=True)}
    elif form == 2:
        args |= {"end": g.number(0, n + 3, whole=True), "out_of_bounds_policy": "trim_to_shape"}
    else:
        args |= {"rel_shape": g.number(0.1, 1)}
    return fn.slice(x, **args)


@move("flip", weight=1.5)
def _flip(g: Garden) -> Any:
    args = {"horizontal": g.number(0, 1, whole=True), "vertical": g.number(0, 1, whole=True)}
    return fn.flip(g.image(), **args)


@move("cast", weight=2)
def _cast(g: Garden) -> Any:
    return fn.cast(g.array(), dtype=g.pick((*PIXELS, DType.INT8, DType.UINT32, DType.INT64, DType.BOOL, DType.FLOAT64)))


@move("resize", weight=2)
def _resize(g: Garden) -> Any:
    x = g.image()
    args: dict[str, Any] = {"interp_type": g.pick(list(InterpType)), "antialias": g.chance(0.8)}
    form = g.whole(0, 4)
    if form == 0:
        args["size"] = (g.pick(_SIZES), g.pick(_SIZES))
    elif form == 1:
        args |= {"resize_x": g.number(1, 12), "resize_y": g.number(1, 12, whole=True)}
    elif form == 2:
        args |= {g.pick(("resize_shorter", "resize_longer")): g.number(2, 9)}
    elif form == 3:
        args |= {"size": (g.pick(_SIZES), g.pick(_SIZES)), "mode": g.pick(("not_larger", "not_smaller", "stretch"))}
    else:
        args |= {"resize_x": g.pick((-5, 5, 9)), "mode": g.pick(("default", "stretch"))}
    if g.chance(0.3):
        args |= {"roi_start": (0.25, 0.1), "roi_end": (g.pick((0.7, 1.0)), 0.9), "roi_relative": True}
    if g.chance(0.15):
        args["dtype"] = g.pick(PIXELS)
    if g.chance(0.1):
        args["min_filter"] = g.pick(list(InterpType))
    if g.chance(0.1):
        args["save_attrs"] = True
    return fn.resize(x, **args)


@move("crop_mirror_normalize", weight=2)
def _crop_mirror_normalize(g: Garden) -> Any:
    x = g.choose(lambda v: {"H", "W", "C"} <= set(g.layout(v)) and all(a.size for a in g.arrays(v)))
    channels = g.least(x, "C")
    count = g.pick((1, channels))
    args: dict[str, Any] = {
        "mean": [g.whole(0, 200) + 0.5 for _ in range(count)],
        "std": [g.whole(20, 90) + 0.25 for _ in range(g.pick((1, count)))],
        "mirror": g.number(0, 1, whole=True),
        "output_layout": g.pick(("CHW", "HWC")),
        "dtype": g.pick((DType.FLOAT, DType.FLOAT, DType.FLOAT16, DType.UINT8, DType.INT8)),
    }
    if g.chance(0.3):
        args |= {"scale": g.pick((2.0, 64.0, 0.3)), "shift": g.pick((0.0, 1.0, 128.0))}
    if g.chance(0.3):
        args |= {"crop": (g.whole(1, g.least(x, "H")), g.whole(1, g.least(x, "W"))), "crop_pos_x": g.number(0, 1)}
    if g.chance(0.2):
        args["pad_output"] = True
    if g.chance(0.2):
        args["mean"] = g.number(0, 100)
    return fn.crop_mirror_normalize(x, **args)


@move("random.coin_flip", weight=0.4)
def _coin_flip(g: Garden) -> Any:
    args: dict[str, Any] = {"probability": g.number(0, 1)}
    if g.chance(0.5):
        args["shape"] = [g.number(1, 5, whole=True) for _ in range(g.whole(1, 2))] if "stack" in names() else (2, 3)
    return fn.random.coin_flip(**args)


@move("peek_image_shape", "decoders.image", weight=0.5)
def _peek(g: Garden) -> Any:
    return fn.peek_image_shape(_encoded(g))


@move("decoders.image", weight=1.0)
def _decode(g: Garden) -> Any:
    """The same file again: shared nodes, and windows that must not be pushed into both."""
    return fn.decoders.image(_encoded(g), dtype=g.pick((DType.UINT8, DType.UINT8, DType.FLOAT, DType.UINT16)))


@move("decoders.image_random_crop", weight=1.0)
def _decode_random_crop(g: Garden) -> Any:
    return fn.decoders.image_random_crop(_encoded(g), random_area=(0.2, 1.0))


def _encoded(g: Garden) -> Any:
    return g.choose(lambda v: v.builder.nodes[v.edge.node].operator.kind == "source" and v.edge.output == 0)
