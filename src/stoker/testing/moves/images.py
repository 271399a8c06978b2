# SPDX-License-Identifier: Apache-2.0
"""Moves on images: windows, sizes, colours, neighbourhoods, and changes of whole images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...contract.types import DType, InterpType
from ...frontends import fn
from ...frontends.data_node import DataNode
from ..graph_grower import ANY, FILTERS, PIXELS, SIZES, GraphGrower, Move, move_registrar

MOVES: list[tuple[float, Move]] = []
move = move_registrar(MOVES)


# ---- windows and sizes ----


@move(1.5)
def crop(g: GraphGrower) -> Any:
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
def slice_(g: GraphGrower) -> Any:
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
def flip(g: GraphGrower) -> Any:
    return fn.flip(g.image(), horizontal=g.number(0, 1, whole=True), vertical=g.number(0, 1, whole=True))


def _filters(g: GraphGrower) -> dict[str, Any]:
    args: dict[str, Any] = {"interp_type": g.pick(FILTERS), "antialias": g.chance(0.8)}
    if g.chance(0.1):
        args["min_filter"] = g.pick(FILTERS)
    return args


def _size(g: GraphGrower) -> dict[str, Any]:
    form = g.whole(0, 4)
    if form == 0:
        return {"size": (g.pick(SIZES), g.pick(SIZES))}
    if form == 1:
        return {"resize_x": g.number(1, 12), "resize_y": g.number(1, 12, whole=True)}
    if form == 2:
        return {g.pick(("resize_shorter", "resize_longer")): g.number(2, 9)}
    if form == 3:
        return {"size": (g.pick(SIZES), g.pick(SIZES)), "mode": g.pick(("not_larger", "not_smaller", "stretch"))}
    return {"resize_x": g.pick((-5, 5, 9)), "mode": g.pick(("default", "stretch"))}


@move(2.0)
def resize(g: GraphGrower) -> Any:
    args = _filters(g) | _size(g)
    if g.chance(0.3):
        args |= {"roi_start": (0.25, 0.1), "roi_end": (g.pick((0.7, 1.0)), 0.9), "roi_relative": True}
    if g.chance(0.15):
        args["dtype"] = g.pick((*PIXELS, DType.BOOL))
    if g.chance(0.1):
        args["save_attrs"] = True
    return fn.resize(g.image(), **args)


@move(0.7)
def resize_crop_mirror(g: GraphGrower) -> Any:
    args = _filters(g) | {"resize_shorter": g.number(6, 9), "crop": (g.whole(1, 5), g.whole(1, 5))}
    return fn.resize_crop_mirror(g.image(), crop_pos_x=g.number(0, 1), mirror=g.number(0, 1, whole=True), **args)


@move(0.7)
def random_resized_crop(g: GraphGrower) -> Any:
    return fn.random_resized_crop(g.image(), size=(g.pick(SIZES), g.pick(SIZES)), **_filters(g))


@move(1.0)
def rotate(g: GraphGrower) -> Any:
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
def crop_mirror_normalize(g: GraphGrower) -> Any:
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
def cast(g: GraphGrower) -> Any:
    return fn.cast(g.array(), dtype=g.pick(ANY))


@move(1.5)
def color(g: GraphGrower) -> Any:
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
def color_space(g: GraphGrower) -> Any:
    x = g.choose(lambda v: g.dtype(v) == DType.UINT8 and g.layout(v).endswith("HWC"))
    kinds = ("RGB", "BGR", "YCbCr", "GRAY")
    return fn.color_space_conversion(x, image_type=g.pick(kinds), output_type=g.pick(kinds))


@move(0.8)
def noisy(g: GraphGrower) -> Any:
    x = g.choose(lambda v: g.dtype(v) != DType.BOOL)
    return fn.noise.gaussian(x, mean=g.pick((0.0, -3.0)), stddev=g.number(0, 40))


@move(0.8)
def looked_up(g: GraphGrower) -> Any:
    x = g.choose(lambda v: not g.dtype(v).is_float and g.dtype(v) != DType.BOOL)
    keys = [int(k) for k in g.rng.choice(300, g.whole(0, 40), replace=False)]
    values = [float(np.float32(v)) for v in g.rng.uniform(-300, 300, len(keys))]
    dtype = g.pick((DType.FLOAT, DType.UINT8, DType.INT16, DType.FLOAT16, DType.INT64))
    return fn.lookup_table(x, keys=keys, values=values, default_value=g.pick((0.0, 77.0)), dtype=dtype)


@move(0.8)
def erased(g: GraphGrower) -> Any:
    x = g.choose(lambda v: len(g.layout(v)) > 0 and "?" not in g.layout(v))
    rank = len(g.layout(x))
    axes = tuple(int(i) for i in g.rng.permutation(rank)[: g.whole(1, rank)])
    count = len(axes) * g.whole(1, 2)
    args: dict[str, Any] = {"axes": axes, "centered_anchor": g.chance(0.3), "normalized_shape": g.chance(0.3)}
    for name, low, high in (("anchor", -2, 9), ("shape", -1, 6)):
        args[name] = [float(np.float32(v)) for v in g.rng.uniform(low, high, count)]
    return fn.erase(x, fill_value=g.pick((0.0, 9.5, 400.0)), **args)


@move(0.8)
def effect(g: GraphGrower) -> Any:
    form = g.pick(("grid_mask", "salt_and_pepper", "coarse_dropout", "solarize", "posterize", "channel_shuffle"))
    if form == "grid_mask":
        return fn.grid_mask(g.image(), tile=g.whole(1, 6), ratio=g.number(0, 1), shift_x=g.number(-3, 3))
    if form == "salt_and_pepper":
        x = g.choose(lambda v: g.dtype(v) != DType.BOOL)
        return fn.noise.salt_and_pepper(x, prob=g.number(0, 1), per_channel=g.chance(0.5))
    if form == "coarse_dropout":
        return fn.coarse_dropout(g.image(), holes=(0, g.whole(0, 3)), height=(0.1, 0.9), fill_value=7.0)
    if form == "solarize":
        x = g.choose(lambda v: g.dtype(v) in (DType.UINT8, DType.UINT16, DType.FLOAT, DType.FLOAT16))
        return fn.solarize(x, threshold=g.number(0, 200))
    if form == "posterize":
        return fn.posterize(g.choose(lambda v: g.dtype(v) == DType.UINT8), bits=g.number(0, 8, whole=True))
    x = g.choose(lambda v: "C" in g.layout(v) and len({a.shape[g.layout(v).index("C")] for a in g.arrays(v)}) == 1)
    return fn.channel_shuffle(x, channels=g.least(x, "C"))


# ---- neighbourhoods, reductions ----

_FILTERED = (DType.UINT8, DType.INT8, DType.UINT16, DType.INT16, DType.FLOAT16, DType.FLOAT)
_IMAGES = ("HW", "HWC", "CHW", "FHW", "FHWC", "FCHW")


def _image_of(g: GraphGrower, types: Sequence[DType]) -> DataNode:
    return g.choose(lambda v: g.layout(v) in _IMAGES and g.dtype(v) in types and all(a.size for a in g.arrays(v)))


@move(0.8)
def filtered(g: GraphGrower) -> Any:
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
def equalized(g: GraphGrower) -> Any:
    return fn.equalize(_image_of(g, (DType.UINT8,)))


@move(0.5)
def perspective(g: GraphGrower) -> Any:
    x = _image_of(g, (DType.UINT8,))
    matrix = g.rng.normal(0, 1, 9) * (0.3, 0.3, 2.0, 0.3, 0.3, 2.0, 0.02, 0.02, 0.1) + (1, 0, 0, 0, 1, 0, 0, 0, 1)
    args: dict[str, Any] = {"matrix": [float(np.float32(n)) for n in matrix], "fill_value": g.pick((0.0, 99.0))}
    if g.chance(0.4):
        args["size"] = (g.pick(SIZES), g.pick(SIZES))
    args["interp_type"] = g.pick((InterpType.INTERP_NN, InterpType.INTERP_LINEAR, InterpType.INTERP_CUBIC))
    return fn.experimental.warp_perspective(
        x, inverse_map=g.chance(0.7), pixel_origin=g.pick(("corner", "center")), **args
    )


@move(0.8)
def mapped(g: GraphGrower) -> Any:
    x = _image_of(g, (*_FILTERED, DType.INT32))
    args: dict[str, Any] = {"interp_type": g.pick((InterpType.INTERP_NN, InterpType.INTERP_LINEAR))}
    args["fill_value"] = g.pick((0.0, 9.0, 300.0))
    form = g.pick(("sphere", "water", "jitter", "lens_distortion", "elastic"))
    if form == "water":
        args |= {"ampl_x": g.number(-4, 4), "freq_y": g.number(0, 1), "mask": g.number(0, 1, whole=True)}
    elif form == "jitter":
        args["nDegree"] = g.whole(1, 6)
    elif form == "lens_distortion":
        args |= {"radial": (g.pick((0.0, 0.5, -0.75)), 0.25), "focal": g.number(0.5, 2)}
    elif form == "elastic":
        args |= {"alpha": g.number(0, 20), "sigma": g.number(0.5, 2)}
    return getattr(fn, form)(x, **args)


@move(0.8)
def reduced(g: GraphGrower) -> Any:
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
def blurred(g: GraphGrower) -> Any:
    args: dict[str, Any] = {"sigma": g.number(0.3, 2)} if g.chance(0.6) else {"window_size": g.pick((1, 3, 5, (3, 7)))}
    return fn.gaussian_blur(_image_of(g, _FILTERED), **args)


@move(1.5)
def placed(g: GraphGrower) -> Any:
    x = g.choose(lambda v: len(g.layout(v)) > 0 and all(a.size for a in g.arrays(v)) and g.dtype(v) in PIXELS)
    axes = [str(name) for name in g.rng.choice(list(g.layout(x)), 2)]
    args: dict[str, Any] = {"axes": "".join(axes), "gradient": g.chance(0.4), "by_channel": g.chance(0.4)}
    for name, low, high in (("first", -2, 2), ("second", -2, 2), ("limit", -3, 6)):
        args[name] = g.number(low, high, whole=True) if g.chance(0.5) else g.whole(low, high)
    return g.builder.call("testing.position_mask", (x,), {**args, "fill": g.pick((0.0, 7.0, 100.0))})
