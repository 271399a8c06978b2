# SPDX-License-Identifier: Apache-2.0
"""Sampling of images where two programs, or two tensors, say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.expr import Scalar, is_static
from ...contract.lowering import Lowering
from ...contract.operator import IMAGES, Operator, RowContext
from ...contract.pixel import Px, coordinate, select, unary, uniform
from ...contract.step import Inlining, Launches, LaunchPass, Value, ViewOp
from ...contract.types import DType, InterpType
from ..generic.cast import cast_array
from ._axes import each_frame, image_axes
from ._borders import BORDERS, border_positions

_PIXELS = 16384  # of a block on a GPU (native/device/own_map.cuh)
_MAPPED = (DType.UINT8, DType.INT8, DType.UINT16, DType.INT16, DType.INT32, DType.FLOAT)
_FEW_REGISTERS = {(0, "constant"), (0, "clamp"), (1, "constant")}  # samplings and borders
_CARRIER = {DType.BOOL: DType.UINT8, DType.FLOAT16: DType.FLOAT, DType.BFLOAT16: DType.FLOAT}

Places = tuple[Px, Px]  # row and column of the source, FLOAT
_SAMPLINGS = (InterpType.INTERP_NN, InterpType.INTERP_LINEAR, InterpType.INTERP_CUBIC)  # in the kernel's order


def interpolation(default: InterpType) -> Any:
    """Declare the argument that says how to sample between pixels."""
    return arg("interp", default, choices=_SAMPLINGS, doc="INTERP_NN, INTERP_LINEAR or INTERP_CUBIC.")


class MapArguments(Operator):
    """Arguments of operators that sample an image at coordinates."""

    default_layouts = IMAGES
    gives_bfloat16 = takes_bfloat16 = True
    interp_type = interpolation(InterpType.INTERP_NN)
    fill_value = arg("float", 0.0, doc="Value outside of the image.")


class MaskedMapArguments(MapArguments):
    """The same, with DALI's switch."""

    mask = arg("int", 1, per_row=True, doc="0: the image stays as it is.")


def height_and_width(c: Lowering, x: Value) -> tuple[Any, Any]:
    """Return the extents of an image, which must have pixels below 2**24, so that float32 numbers them."""
    extents = c.extent(x, "H"), c.extent(x, "W")
    for n in extents:
        c.require(ex.both(n > 0, n < 1 << 24), "expected an image of 1 to 2**24 pixels on a side, got {0}", n)
    return extents


def pixel_places() -> Places:
    """Return the row and the column of the output's pixel, FLOAT."""
    return coordinate(0).cast(DType.FLOAT), coordinate(1).cast(DType.FLOAT)


def projected_maps(
    c: Lowering, x: Value, numbers: Sequence[Any], kind: InterpType, height: Scalar, width: Scalar
) -> tuple[Value, Value]:
    """Return the coordinates of all pixels of an output, for :func:`mapped`: float32 of (H, W), or of (F, H, W) if the
    numbers differ by frame.

    Args:
        c: the builder.
        x: the image.
        numbers: eight numbers of a perspective from the output to the image, corners of pixels at the integers.
        kind: the interpolation.
        height: height of the output.
        width: its width.
    """
    height_and_width(c, x)
    # Frames share a size.
    per_frame = any(c.differs_by_frame(number) for number in numbers)
    c.expect(not per_frame or image_axes(c, x)[0] == 0, "expected a video (a leading F axis) for matrices per frame")
    down, across = (coordinate(int(per_frame) + i).cast(DType.FLOAT64) + 0.5 for i in (0, 1))
    n = [uniform(number, DType.FLOAT64) for number in numbers]
    below = n[6] * across + n[7] * down + 1.0
    places = [(n[k] * across + n[k + 1] * down + n[k + 2]) / below for k in (3, 0)]
    shape = (x.shape[0], height, width) if per_frame else (height, width)
    maps = [c.pointwise([], _on_pixels(p, kind).cast(DType.FLOAT), shape, "FHW"[-len(shape) :]) for p in places]
    return maps[0], maps[1]


def _on_pixels(place: Px, kind: InterpType) -> Px:
    """Return the coordinate that `mapped` expects: the pixel's number, or 0 at the centre of the first pixel."""
    return unary("floor", place) if kind == InterpType.INTERP_NN else place - 0.5


def projected_maps_array(numbers: Any, kind: InterpType, height: int, width: int) -> tuple[Any, Any]:
    """Apply :func:`projected_maps` in NumPy; eight numbers or more."""
    across, down = np.arange(width) + 0.5, (np.arange(height) + 0.5)[:, None]
    with np.errstate(all="ignore"):
        below = numbers[6] * across + numbers[7] * down + 1
        places = [
            np.broadcast_to((numbers[k] * across + numbers[k + 1] * down + numbers[k + 2]) / below, (height, width))
            for k in (3, 0)
        ]
    maps = [(np.floor(p) if kind == InterpType.INTERP_NN else p - 0.5).astype(np.float32) for p in places]
    return maps[0], maps[1]


def sampled(
    c: Lowering, x: Value, places: Places, kind: InterpType, *, fill: float, border: str = "constant",
    inputs: Sequence[tuple[Value, Sequence[ViewOp]]] = (),
) -> Value:  # fmt: skip
    """Sample ``x`` at ``places``, a program of coordinates 0 (row) and 1 (column) of the output, which has the size of
    ``x``, and of ``inputs``, each with a view, which are broadcast.

    Nearest neighbours are the elements at the whole parts; pixel centres are at whole numbers for interpolation.
    """
    size = height_and_width(c, x)
    views = [list(ops) for _, ops in inputs]
    maps = c.stage([v for v, _ in inputs], [(DType.FLOAT, size, "HW")] * 2, [[p] for p in places], pre=views)
    return mapped(c, x, maps[0], maps[1], kind, fill=fill, border=border)


def masked(
    c: Lowering, x: Value, places: Places, *, half: bool = True, border: str = "constant",
    inputs: Sequence[tuple[Value, Sequence[ViewOp]]] = (),
) -> Value:  # fmt: skip
    """Sample ``x`` for an operator with `MaskedMapArguments`.

    Args:
        c: the builder.
        x: the image.
        places: coordinates of the source with the corner of the first pixel at 0.
        half: centres of pixels are at half numbers.
        border: as in :func:`mapped`.
        inputs: inputs of the program with their views, broadcast to (H, W).
    """
    kind = c.const("interp_type")
    shift = 0.5 if kind != InterpType.INTERP_NN and half else 0.0
    own = pixel_places()
    moved = [p - shift if shift else p for p in places]
    on = ex.different(c.scalar("mask"), 0)
    if is_static(on):
        chosen = moved if on else list(own)
    else:
        chosen = [select(uniform(on, DType.BOOL), p, q) for p, q in zip(moved, own, strict=True)]
    return sampled(c, x, (chosen[0], chosen[1]), kind, fill=c.const("fill_value"), border=border, inputs=inputs)


def mapped(
    c: Lowering, x: Value, map_y: Value, map_x: Value, kind: InterpType, *, fill: float, border: str = "constant"
) -> Value:
    """Sample ``x`` at coordinates, float32 of (H, W) or (F, H, W). ``border`` is one of `filter`.

    Truth values are not mixed: they are sampled as nearest neighbours. The cubic convolution has the coefficient -3/4,
    as in OpenCV, and does not clip between its two passes.
    """
    own, axes = x.dtype, image_axes(c, x)
    carrier = own if own in _MAPPED else _CARRIER.get(own)
    if carrier is None:
        known = ", ".join(map(str, (*_MAPPED, *_CARRIER)))
        raise UnsupportedError(f"`{c.scope.operator.name}`: expected one of {known}, got {own}. Cast it first")
    height, width = map_y.shape[-2:]
    shape = list(x.shape)
    shape[axes[1]], shape[axes[2]] = height, width
    frames = 1 if axes[0] < 0 else shape[axes[0]]
    blocks = (frames * height * width + _PIXELS - 1) // _PIXELS
    sampling = 0 if own == DType.BOOL else _SAMPLINGS.index(kind)
    beyond = tuple(BORDERS).index(border)
    # Forms for other elements and borders need more registers.
    few_registers = carrier.size == 1 and (sampling, border) in _FEW_REGISTERS
    sample = LaunchPass(blocks, resident_threads=768 if few_registers else 512)
    out = c.native(
        "map", [c.cast(x, carrier), map_y, map_x], [(carrier, shape, x.layout)], attrs=(*axes, sampling, beyond),
        params=(fill, *axes), own=Launches("Map", {"sample": sample}, constants=(sampling, beyond)),
        inlining=Inlining(count=2),
    )[0]  # fmt: skip
    return c.cast(out, own)


def mapped_reference(
    x: Any, layout: str, map_y: Any, map_x: Any, kind: InterpType, *, fill: float, border: str = "constant"
) -> Any:
    """Apply :func:`mapped` in NumPy; maps without frames."""
    own = DType.of(x.dtype)
    wide = np.float64 if x.dtype == np.int32 else np.float32
    plain = kind == InterpType.INTERP_NN or own == DType.BOOL
    constant = cast_array(np.float64(fill), own)

    def shown(frame: Any) -> Any:
        extents = frame.shape[:2]
        with np.errstate(invalid="ignore"):
            limit = [(-2, n + 1) if border == "constant" else (-np.inf, np.inf) for n in extents]
            near = [(m > low) & (m < high) for m, (low, high) in zip((map_y, map_x), limit, strict=True)]
        near = [near[0] & near[1]] * 2 if border == "constant" else near
        places = [np.where(n, m, np.float32(-2)) for n, m in zip(near, (map_y, map_x), strict=True)]
        rows, columns = (np.floor(m).astype(np.int64) for m in places)

        def at(down: int, right: int) -> Any:
            i, j = rows + down, columns + right
            inside = (i >= 0) & (i < extents[0]) & (j >= 0) & (j < extents[1])
            values = frame[border_positions(i, extents[0], border), border_positions(j, extents[1], border)]
            return np.where(inside[..., None], values, constant) if border == "constant" else values

        if plain:
            return at(0, 0).astype(frame.dtype)
        dy, dx = ((m - np.floor(m)).astype(wide)[..., None] for m in places)
        taps = range(-1, 3) if kind == InterpType.INTERP_CUBIC else range(2)
        with np.errstate(all="ignore"):
            lines = [_between([at(k, j).astype(wide) for j in taps], dx) for k in taps]
            return cast_array(_between(lines, dy), own)

    return each_frame(x, layout, shown)


def _between(values: list[Any], t: Any) -> Any:
    """Interpolate between two values, or with a cubic convolution (coefficient -3/4) between four."""
    if len(values) == 2:
        return values[0] + (values[1] - values[0]) * t
    a, b, c, d = values
    third, second = 1.25 * (b - c) + 0.75 * (d - a), 1.5 * (a + c) - 2.25 * b - 0.75 * d
    return b + t * (0.75 * (c - a) + t * (second + t * third))


def masked_reference(row: RowContext, x: Any, places: Callable[[Any, Any, int, int], Any], *, half: bool = True) -> Any:
    """Apply :func:`masked` in NumPy. ``places(y, x, height, width)`` returns the coordinates."""
    layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
    height, width = (x.shape[layout.index(name)] for name in "HW")
    own = [g.astype(np.float32) for g in np.indices((height, width))]
    kind = row["interp_type"]
    shift = np.float32(0.5 if kind != InterpType.INTERP_NN and half else 0)
    maps = own
    if int(row.number("mask")):
        maps = [np.broadcast_to(p, (height, width)) - shift for p in places(own[0], own[1], height, width)]
    return mapped_reference(x, layout, maps[0], maps[1], kind, fill=row["fill_value"])
