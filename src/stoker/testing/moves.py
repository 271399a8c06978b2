# SPDX-License-Identifier: Apache-2.0
"""The moves of random graphs: how the operators are used, with arguments constant and per row.

A move is user code: it takes values that there are and gives new ones. It need not be certain that the operators take
its arguments; what they refuse is taken back.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import math
from ..contract.types import DType, InterpType
from ..frontends import fn
from ..frontends.conditionals import Runtime
from ..frontends.data_node import DataNode
from .graphs import PIXELS, Garden, Move, source

MOVES: list[tuple[float, Move]] = []
_SIZES = (1, 2, 3, 5, 7, 8, 11)
_ANY = (*PIXELS, DType.INT8, DType.UINT32, DType.INT64, DType.UINT64, DType.BOOL, DType.FLOAT64)
_FILTERS = tuple(InterpType)


def move(weight: float) -> Callable[[Move], Move]:
    """Declare a move, which is made about ``weight`` times as often as others."""

    def declare(function: Move) -> Move:
        MOVES.append((weight, function))
        return function

    return declare


move(0.8)(source)


# ---- windows and sizes ----


@move(1.5)
def crop(g: Garden) -> Any:
    x = g.image()
    args: dict[str, Any] = {"crop_pos_x": g.number(0, 1), "crop_pos_y": g.number(0, 1)}
    height, width = g.least(x, "H"), g.least(x, "W")
    form = g.whole(0, 4)
    if form == 0:
        args["crop"] = (g.whole(1, height), g.whole(1, width))
    elif form == 1:
        args |= {"crop_h": g.number(1, height), "crop_w": g.number(1, width, whole=True)}
    elif form == 2:
        args |= {"crop": (g.whole(1, height + 4), g.whole(1, width + 4)), "out_of_bounds_policy": "trim_to_shape"}
    elif form == 3:
        args |= {"crop": (g.whole(1, height + 4), g.whole(1, width + 4)), "out_of_bounds_policy": "pad"}
        args |= {"fill_values": g.pick((0.0, 7.0, 200.0))}
    else:
        args["crop_w"] = g.whole(1, width)
    if g.chance(0.2):
        args["dtype"] = g.pick(PIXELS)
    if g.chance(0.2):
        args["rounding"] = "truncate"
    return fn.crop(x, **args)


@move(1.0)
def slice_(g: Garden) -> Any:
    x = g.choose(lambda v: len(g.layout(v)) > 0 and all(a.size for a in g.arrays(v)))
    axis = g.whole(0, len(g.layout(x)) - 1)
    n = min(a.shape[axis] for a in g.arrays(x))
    args: dict[str, Any] = {"axes": (axis,)}
    form = g.whole(0, 4)
    if form == 0:
        args |= {"rel_start": g.number(0, 0.5), "rel_end": g.number(0.5, 1)}
    elif form == 1:
        start = g.whole(0, n - 1)
        args |= {"start": g.number(0, start, whole=True), "shape": g.number(0, n - start, whole=True)}
    elif form == 2:
        args |= {"end": g.number(0, n + 3, whole=True), "out_of_bounds_policy": "trim_to_shape"}
    elif form == 3:
        args |= {"start": g.number(-2, 2, whole=True), "shape": g.whole(1, n + 2), "out_of_bounds_policy": "pad"}
    else:
        args |= {"rel_shape": g.number(0.1, 1)}
    return fn.slice(x, **args)


@move(1.5)
def flip(g: Garden) -> Any:
    return fn.flip(g.image(), horizontal=g.number(0, 1, whole=True), vertical=g.number(0, 1, whole=True))


def _filters(g: Garden) -> dict[str, Any]:
    args: dict[str, Any] = {"interp_type": g.pick(_FILTERS), "antialias": g.chance(0.8)}
    if g.chance(0.1):
        args["min_filter"] = g.pick(_FILTERS)
    return args


def _size(g: Garden) -> dict[str, Any]:
    form = g.whole(0, 4)
    if form == 0:
        return {"size": (g.pick(_SIZES), g.pick(_SIZES))}
    if form == 1:
        return {"resize_x": g.number(1, 12), "resize_y": g.number(1, 12, whole=True)}
    if form == 2:
        return {g.pick(("resize_shorter", "resize_longer")): g.number(2, 9)}
    if form == 3:
        return {"size": (g.pick(_SIZES), g.pick(_SIZES)), "mode": g.pick(("not_larger", "not_smaller", "stretch"))}
    return {"resize_x": g.pick((-5, 5, 9)), "mode": g.pick(("default", "stretch"))}


@move(2.0)
def resize(g: Garden) -> Any:
    args = _filters(g) | _size(g)
    if g.chance(0.3):
        args |= {"roi_start": (0.25, 0.1), "roi_end": (g.pick((0.7, 1.0)), 0.9), "roi_relative": True}
    if g.chance(0.15):
        args["dtype"] = g.pick((*PIXELS, DType.BOOL))
    if g.chance(0.1):
        args["save_attrs"] = True
    return fn.resize(g.image(), **args)


@move(0.7)
def resize_crop_mirror(g: Garden) -> Any:
    args = _filters(g) | {"resize_shorter": g.number(6, 9), "crop": (g.whole(1, 5), g.whole(1, 5))}
    return fn.resize_crop_mirror(g.image(), crop_pos_x=g.number(0, 1), mirror=g.number(0, 1, whole=True), **args)


@move(0.7)
def random_resized_crop(g: Garden) -> Any:
    return fn.random_resized_crop(g.image(), size=(g.pick(_SIZES), g.pick(_SIZES)), **_filters(g))


@move(1.0)
def rotate(g: Garden) -> Any:
    args: dict[str, Any] = {"angle": g.number(-180, 180)}
    if g.chance(0.3):
        args["angle"] = g.pick((0, 90, 180, -90))
    if g.chance(0.4):
        args["keep_size"] = True
    if g.chance(0.5):
        args["fill_value"] = g.pick((0.0, 99.0))
    args["interp_type"] = g.pick((InterpType.INTERP_LINEAR, InterpType.INTERP_NN))
    return fn.rotate(g.image(), **args)


# ---- pixels ----


@move(2.0)
def crop_mirror_normalize(g: Garden) -> Any:
    x = g.choose(lambda v: {"H", "W", "C"} <= set(g.layout(v)) and all(a.size for a in g.arrays(v)))
    count = g.pick((1, g.least(x, "C")))
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
    elif g.chance(0.2):
        args |= {"crop": (g.least(x, "H") + 2, g.least(x, "W")), "out_of_bounds_policy": "pad", "fill_values": 3.0}
    if g.chance(0.2):
        args["pad_output"] = True
    if g.chance(0.2):
        args["mean"] = g.number(0, 100)
    return fn.crop_mirror_normalize(x, **args)


@move(2.0)
def cast(g: Garden) -> Any:
    return fn.cast(g.array(), dtype=g.pick(_ANY))


@move(1.5)
def color(g: Garden) -> Any:
    x = g.choose(lambda v: "C" in g.layout(v) and {a.shape[g.layout(v).index("C")] for a in g.arrays(v)} == {3})
    form = g.pick(("brightness", "contrast", "brightness_contrast", "hue", "saturation", "hsv", "color_twist"))
    wanted = {
        "brightness": ("brightness", "brightness_shift"), "contrast": ("contrast", "contrast_center"), "hue": ("hue",),
        "brightness_contrast": ("brightness", "contrast"), "saturation": ("saturation",),
        "hsv": ("hue", "saturation", "value"), "color_twist": ("brightness", "contrast", "saturation", "hue"),
    }[form]  # fmt: skip
    args: dict[str, Any] = {k: g.number(-90, 90) if k == "hue" else g.number(0.1, 1.9) for k in wanted}
    if g.chance(0.2):
        args["dtype"] = g.pick((DType.UINT8, DType.FLOAT, DType.FLOAT16))
    return getattr(fn, form)(x, **args)


@move(0.5)
def color_space(g: Garden) -> Any:
    x = g.choose(lambda v: g.dtype(v) == DType.UINT8 and g.layout(v).endswith("HWC"))
    kinds = ("RGB", "BGR", "YCbCr", "GRAY")
    return fn.color_space_conversion(x, image_type=g.pick(kinds), output_type=g.pick(kinds))


# ---- neighbourhoods, reductions ----

_FILTERED = (DType.UINT8, DType.INT8, DType.UINT16, DType.INT16, DType.FLOAT16, DType.FLOAT)
_IMAGES = ("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW")


def _image_of(g: Garden, types: Sequence[DType]) -> DataNode:
    return g.choose(lambda v: g.layout(v) in _IMAGES and g.dtype(v) in types and all(a.size for a in g.arrays(v)))


@move(0.8)
def filtered(g: Garden) -> Any:
    x = _image_of(g, _FILTERED)
    window = g.rng.normal(0, 0.4, (g.whole(1, 4), g.whole(1, 4))).astype(np.float32)
    args: dict[str, Any] = {"border": g.pick(("reflect_101", "reflect_1001", "wrap", "clamp", "constant"))}
    if g.chance(0.3):
        args["dtype"] = DType.FLOAT
    if g.chance(0.3):
        args["mode"] = "valid"
    else:
        args["anchor"] = g.number(-1, min(window.shape) - 1, whole=True)
    return fn.filter(x, g.builder.call("_constant", (), {"value": window}), **args)


@move(0.5)
def equalized(g: Garden) -> Any:
    return fn.equalize(_image_of(g, (DType.UINT8,)))


@move(0.5)
def perspective(g: Garden) -> Any:
    x = _image_of(g, (DType.UINT8,))
    matrix = g.rng.normal(0, 1, 9) * (0.3, 0.3, 2.0, 0.3, 0.3, 2.0, 0.02, 0.02, 0.1) + (1, 0, 0, 0, 1, 0, 0, 0, 1)
    args: dict[str, Any] = {"matrix": [float(np.float32(n)) for n in matrix], "fill_value": g.pick((0.0, 99.0))}
    if g.chance(0.4):
        args["size"] = (g.pick(_SIZES), g.pick(_SIZES))
    args["interp_type"] = g.pick((InterpType.INTERP_NN, InterpType.INTERP_LINEAR, InterpType.INTERP_CUBIC))
    return fn.experimental.warp_perspective(
        x, inverse_map=g.chance(0.7), pixel_origin=g.pick(("corner", "center")), **args
    )


@move(0.8)
def reduced(g: Garden) -> Any:
    x = g.choose(lambda v: g.dtype(v) != DType.FLOAT16)
    rank = g.arrays(x)[0].ndim
    args: dict[str, Any] = {"keep_dims": g.chance(0.5)}
    if rank and g.chance(0.7):
        args["axes"] = tuple(int(i) for i in g.rng.permutation(rank)[: g.whole(1, rank)])
    form = g.pick(("min", "max", "sum", "mean", "mean_square", "rms", "variance", "std_dev"))
    if form in ("variance", "std_dev"):
        mean = (
            fn.reductions.mean(x, **args)
            if g.chance(0.6)
            else g.choose(lambda v: all(a.size == 1 for a in g.arrays(v)))
        )
        return getattr(fn.reductions, form)(x, mean, ddof=g.whole(0, 1), **args)
    if form in ("sum", "mean") and g.chance(0.4):
        args["dtype"] = g.pick((DType.FLOAT, DType.UINT8, DType.INT64, DType.FLOAT64))
    return getattr(fn.reductions, form)(x, **args)


@move(0.5)
def blurred(g: Garden) -> Any:
    args: dict[str, Any] = {"sigma": g.number(0.3, 2)} if g.chance(0.6) else {"window_size": g.pick((1, 3, 5, (3, 7)))}
    return fn.gaussian_blur(_image_of(g, _FILTERED), **args)


# ---- arithmetic ----

_OPERATORS: Sequence[Callable[[Any, Any], Any]] = (
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.and_,
    operator.or_, operator.xor, operator.lt, operator.le, operator.eq, operator.ne, operator.gt, math.min, math.max,
)  # fmt: skip


@move(2.5)
def arithmetic_with_number(g: Garden) -> Any:
    number = (
        g.pick((1, 2, 3, 255, -7, 0.5, 1.0, -2.25, 100.0)) if g.chance(0.6) else g.number(1, 50, whole=g.chance(0.5))
    )
    x, op = g.array(), g.pick(_OPERATORS)
    return op(x, number) if g.chance(0.8) else op(number, x)


@move(1.5)
def arithmetic_of_two(g: Garden) -> Any:
    """Of equal shapes, of a part of itself (broadcast), or of anything."""
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
def function(g: Garden) -> Any:
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
def transpose(g: Garden) -> Any:
    x = g.array()
    rank = len(g.arrays(x)[0].shape)
    order = [int(i) for i in g.rng.permutation(rank)]
    return fn.transpose(x, perm=order, transpose_layout=g.chance(0.7))


@move(0.8)
def reshape(g: Garden) -> Any:
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
def axes(g: Garden) -> Any:
    x = g.array()
    rank = len(g.arrays(x)[0].shape)
    ones = [i for i in range(rank) if all(a.shape[i] == 1 for a in g.arrays(x))]
    if ones and g.chance(0.6):
        return fn.squeeze(x, axes=(g.pick(ones),))
    return fn.expand_dims(x, axes=(g.whole(0, rank),))


@move(1.2)
def index(g: Garden) -> Any:
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
def joined(g: Garden) -> Any:
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


# ---- numbers, filled tensors ----


@move(0.5)
def draw(g: Garden) -> Any:
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
def drawn_like(g: Garden) -> Any:
    return g.pick((fn.random.uniform, fn.random.coin_flip))(g.array())


@move(0.5)
def filled(g: Garden) -> Any:
    form = g.whole(0, 3)
    if form == 0:
        return fn.zeros_like(g.array(), dtype=g.pick(_ANY))
    if form == 1:
        return fn.full_like(g.array(), g.number(0, 90, whole=g.chance(0.5)))
    if form == 2:
        return fn.ones(shape=[g.number(1, 4, whole=True), 3], dtype=g.pick(_ANY))
    return fn.full(g.choose(lambda v: g.arrays(v)[0].ndim < 2), shape=[g.whole(1, 3), *g.least_shape(g.array())[:1]])


@move(0.4)
def shapes(g: Garden) -> Any:
    return fn.shapes(g.array())


@move(0.3)
def copy(g: Garden) -> Any:
    return fn.copy(g.array())


@move(0.3)
def shuffled(g: Garden) -> Any:
    """Another row's data: the only moves whose results depend on the batch."""
    return fn.permute_batch(g.array(), indices=fn.batch_permutation() if g.chance(0.5) else fn.random.choice(2))


def halve(x: Any) -> Any:
    """A user's function."""
    return (x // 2).astype(x.dtype) if x.dtype.kind in "iu" else x * x.dtype.type(0.5)


def jitter(x: Any, rng: Any) -> tuple[Any, Any]:
    """A user's function with random numbers and two outputs."""
    number = np.float32(rng.uniform())
    return (x > number * 9).astype(np.uint8), number


def total(rows: list[Any]) -> list[Any]:
    """A user's function for all rows of a batch."""
    return [np.asarray(x.size, np.int32) for x in rows]


@move(1.0)
def python_function(g: Garden) -> Any:
    x, form = g.array(), g.whole(0, 3)
    if form == 0:
        return fn.python_function(x, function=jitter, num_outputs=2)
    if form == 1:
        return fn.python_function(x, function=total, batch_processing=True)
    if form == 2:
        rank = g.arrays(x)[0].ndim
        return fn.python_function(x, function=halve, output_dtypes=g.dtype(x), output_ndims=rank)
    return fn.python_function(x, function=halve, output_layouts=g.layout(x) if "?" not in g.layout(x) else None)


# ---- videos ----


@move(0.8)
def per_frame(g: Garden) -> Any:
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
def peek(g: Garden) -> Any:
    return fn.peek_image_shape(_encoded(g))


@move(1.0)
def decode(g: Garden) -> Any:
    """The same file again: shared nodes, and windows that must not be pushed into both."""
    return fn.decoders.image(_encoded(g), dtype=g.pick((DType.UINT8, DType.UINT8, DType.FLOAT, DType.UINT16)))


@move(1.5)
def decode_window(g: Garden) -> Any:
    data, form = _encoded(g), g.whole(0, 2)
    if form == 0:
        return fn.decoders.image_random_crop(data, random_area=(0.2, 1.0))
    if form == 1:
        return fn.decoders.image_crop(data, crop=(g.whole(1, 3), g.whole(1, 3)), crop_pos_x=g.number(0, 1))
    return fn.decoders.image_slice(data, rel_start=(g.number(0, 0.4), 0.1), rel_end=(0.9, 1.0), axes=(0, 1))


def _encoded(g: Garden) -> DataNode:
    return g.choose(lambda v: bool(g.labels) and v is g.pool[0])


# ---- conditions ----


@move(2.0)
def condition(g: Garden) -> Any:
    """An ``if`` on a number of the row, whose branches change an image (or leave it), perhaps with another ``if``."""
    return _branch(g, g.image(), 2)


def _branch(g: Garden, x: Any, depth: int) -> Any:
    runtime = Runtime(lambda f: f)
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


def _step(g: Garden, x: Any) -> Any:
    """Something that keeps the type and the axes, whatever the size."""
    form = g.whole(0, 5)
    if form == 0:
        return fn.flip(x, horizontal=g.number(0, 1, whole=True))
    if form == 1:
        return fn.resize(x, size=(g.pick(_SIZES), g.pick(_SIZES)), interp_type=g.pick(_FILTERS))
    if form == 2:
        return fn.crop(
            x, crop=(g.whole(1, 6), g.whole(1, 6)), out_of_bounds_policy="trim_to_shape", crop_pos_x=g.number(0, 1)
        )
    if form == 3:
        return fn.brightness(x, brightness=g.number(0.2, 2.0))
    if form == 4:
        return fn.rotate(x, angle=g.number(-90, 90), fill_value=0)
    return fn.copy(x)
