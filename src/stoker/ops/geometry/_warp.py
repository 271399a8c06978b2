# SPDX-License-Identifier: Apache-2.0
"""Shared code of operators that sample an image through an affine matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import ArgumentError, UnsupportedError
from ...contract.expr import Expr, Scalar
from ...contract.lowering import Lowering
from ...contract.operator import IMAGES_AND_VOLUMES, Operator, RowContext
from ...contract.step import Interpolator, Value
from ...contract.types import DType, InterpType
from ..generic.cast import cast_array, number_in
from ._map import mapped, mapped_reference, projected_maps, projected_maps_array
from ._warp_reference import affine_array
from ._window import MOVED, output_type

_CARRIER = {DType.BOOL: DType.UINT8, DType.INT8: DType.INT16, DType.FLOAT16: DType.FLOAT, DType.BFLOAT16: DType.FLOAT}
_LARGEST = 1 << 24
_COUNTED = {6: "six", 9: "nine", 12: "twelve"}


class WarpArguments(Operator):
    """Arguments for interpolation and fill values."""

    default_layouts = IMAGES_AND_VOLUMES
    gives_bfloat16 = takes_bfloat16 = True
    fill_value = arg("float", None, doc="Value outside of the image; by default that of the nearest edge pixel.")
    interp_type = arg(
        "interp", InterpType.INTERP_LINEAR,
        choices=(InterpType.INTERP_NN, InterpType.INTERP_LINEAR, InterpType.INTERP_CUBIC),
        doc="INTERP_NN, INTERP_LINEAR or, for images, INTERP_CUBIC.",
    )  # fmt: skip
    size = arg(
        "float",
        None,
        many=True,
        per_axis=True,
        per_row=True,
        doc="Size of the canvas in pixels, (height, width); of a volume (depth, height, width).",
    )
    dtype = arg("dtype", None, doc="Element type of the output; by default the input's.")
    output_dtype = arg("dtype", None, doc="Former name of `dtype`.")


def carrier_type(c: Lowering, x: Value) -> DType:
    """Return the type in which the interpolator moves the image."""
    carrier = x.dtype if x.dtype in MOVED else _CARRIER.get(x.dtype)
    if carrier is None:
        name = c.scope.operator.name
        raise UnsupportedError(
            f"`{name}`: expected uint8 to int32, float16, bfloat16 or float32, got {x.dtype}. Cast it first"
        )
    return carrier


def requested_size(c: Lowering) -> tuple[Scalar, Scalar]:
    """Return the argument `size` in whole pixels."""
    height, width = _requested(c, "(height, width)")
    return height, width


def requested_volume(c: Lowering) -> tuple[Scalar, Scalar, Scalar]:
    """Return the argument `size` of a volume."""
    depth, height, width = _requested(c, "(depth, height, width)")
    return depth, height, width


def _requested(c: Lowering, names: str) -> list[Scalar]:
    axes = names.count(",") + 1
    if c.fixed_length("size") != axes:
        raise ArgumentError(f"`{c.scope.operator.name}`: expected `size` as {names}")
    asked = [c.scalar("size", i) for i in range(axes)]
    for n in asked:
        c.require((n >= 0.5) & (n <= _LARGEST), "expected a `size` of 1 to 2**24 pixels, got {0}", n)
    return [ex.round_away(n) for n in asked]


def matrix_numbers(c: Lowering, matrix: Value | None, count: int) -> list[Scalar]:
    """Return the numbers of the matrix: the second input or the argument `matrix`.

    A matrix per frame gives the frame's.
    """
    if (matrix is None) == (not c.given("matrix")):
        got = "neither" if matrix is None else "both"
        raise ArgumentError(f"`{c.scope.operator.name}`: expected a matrix, as second input or as `matrix`, got {got}")
    edge = c.scope.edges.get("matrix") if matrix is None else matrix
    if edge is None:
        length = c.length("matrix") or 0
        c.expect(length == count, f"expected {_COUNTED[count]} numbers as `matrix`, got {{0}}", length)
        return [c.scalar("matrix", i) for i in range(count)]
    known = c.fixed_count(edge, "matrix") if edge.per_frame else c.count(edge)
    text = f"expected a matrix of {_COUNTED[count]} numbers, got {{0}}"
    if known is not None:
        c.expect(known == count, text, known)
    else:
        c.require(ex.equal(Expr("count", edge.id), count), text, Expr("count", edge.id))
    return [c.element(edge, i) for i in range(count)]


def warped_type(own: DType, dtype: DType, linear: bool, fill: float | None) -> DType:
    """Return the type that the interpolator moves: float32 where a value must not be rounded before it becomes
    ``dtype``.
    """
    carrier = own if own in MOVED else _CARRIER[own]
    if dtype == own or (own == DType.INT32 and not dtype.is_float):  # the latter is computed in double
        return carrier
    moves = not linear and (fill is None or number_in(fill, carrier) == fill)
    return carrier if moves else DType.FLOAT


def require_sampled(c: Lowering, height: Scalar, width: Scalar) -> None:
    """Require an image with pixels for cubic sampling. Of other images without pixels every point is outside."""
    if c.const("interp_type") == InterpType.INTERP_CUBIC:
        c.require(ex.both(height > 0, width > 0), "expected an image with pixels, got {0} x {1}", height, width)


def warp(c: Lowering, x: Value, matrix: tuple[Any, ...], height: Scalar, width: Scalar) -> Value:
    """Warp the image by ``matrix`` (canvas pixel to source point, pixel corners at the integers)."""
    carrier_type(c, x)
    fill = c.const("fill_value")
    if c.const("interp_type") == InterpType.INTERP_CUBIC and x.dtype != DType.BOOL:  # truth values are not mixed
        return _warp_cubic(c, x, matrix, height, width)
    linear = c.const("interp_type") == InterpType.INTERP_LINEAR
    dtype = output_type(c.const, x.dtype)
    x = c.cast(x, warped_type(x.dtype, dtype, linear, fill))
    x = c.sample(x, Interpolator("affine", (*matrix, linear, fill is not None, fill or 0.0)), height, width)
    return c.cast(x, dtype)


def _warp_cubic(c: Lowering, x: Value, matrix: tuple[Any, ...], height: Scalar, width: Scalar) -> Value:
    fill, dtype = c.const("fill_value"), output_type(c.const, x.dtype)
    maps = projected_maps(c, x, (*matrix, 0.0, 0.0), InterpType.INTERP_CUBIC, height, width)
    image = mapped(
        c, c.cast(x, _cubic_type(x.dtype, dtype)), *maps, InterpType.INTERP_CUBIC, fill=fill or 0.0,
        border="clamp" if fill is None else "constant",
    )  # fmt: skip
    return c.cast(image, dtype)


def _cubic_type(own: DType, dtype: DType) -> DType:
    """Return the type in which values are sampled: float32 where a value must not be rounded before it becomes
    ``dtype``.
    """
    return own if dtype == own or (own == DType.INT32 and not dtype.is_float) else DType.FLOAT


def warp_array(row: RowContext, x: Any, layout: str, matrix: Any, height: int, width: int) -> Any:
    """Warp one frame in NumPy."""
    linear, own = row["interp_type"] == InterpType.INTERP_LINEAR, DType.of(x.dtype)
    dtype = output_type(row.args.get, own)
    if row["interp_type"] == InterpType.INTERP_CUBIC and own != DType.BOOL:
        maps = projected_maps_array((*matrix, 0.0, 0.0), InterpType.INTERP_CUBIC, height, width)
        fill = row["fill_value"]
        image = mapped_reference(
            cast_array(x, _cubic_type(own, dtype)), layout, *maps, InterpType.INTERP_CUBIC, fill=fill or 0.0,
            border="clamp" if fill is None else "constant",
        )  # fmt: skip
        return cast_array(image, dtype)
    x = cast_array(x, warped_type(own, dtype, linear, row["fill_value"]))
    image = np.moveaxis(x, layout.index("C"), -1) if "C" in layout else x[..., None]
    image = affine_array(image, matrix, height, width, linear, row["fill_value"])
    out = np.moveaxis(image, -1, layout.index("C")) if "C" in layout else image[..., 0]
    return cast_array(out, dtype)
