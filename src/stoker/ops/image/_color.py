# SPDX-License-Identifier: Apache-2.0
"""Linear colour changes: ``out = factor * M(hue, saturation) * x + offset``, per pixel.

Source of the matrices: DALI's ``color_twist``: rotation (hue) and scaling (saturation) of the plane of I and Q in YIQ,
with NTSC's rounded RGB-to-YIQ matrix and its inverse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import Px, load, uniform
from ...contract.step import Value
from ...contract.types import DType, ImageType
from ..generic.cast import cast_array

_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])
_FROM_YIQ = np.linalg.inv(_TO_YIQ)
# M = _KEPT + saturation * (cos(hue) * _SCALED + sin(hue) * _TURNED). _SCALED is 1 - _KEPT, so that M is exactly 1
# without a change of hue and saturation.
_KEPT = np.outer(_FROM_YIQ[:, 0], _TO_YIQ[0])
_SCALED = np.eye(3) - _KEPT
_TURNED = np.outer(_FROM_YIQ[:, 1], _TO_YIQ[2]) - np.outer(_FROM_YIQ[:, 2], _TO_YIQ[1])


class OutputDtype(Operator):
    """Argument for the output's element type."""

    gives_bfloat16 = takes_bfloat16 = True
    dtype = arg("dtype", None, doc="Element type of the output; by default the input's.")


class ColorOrder(Operator):
    """Argument for the order of the channels."""

    image_type = arg(
        "image_type", ImageType.RGB, choices=(ImageType.RGB, ImageType.BGR), doc="Order of the channels: RGB or BGR."
    )


def working_type(dtype: DType) -> DType:
    """Return the type of intermediate sums."""
    return DType.FLOAT if dtype.size <= 2 or dtype == DType.FLOAT else DType.FLOAT64


def half_range(dtype: DType) -> float:
    """Return half of full intensity."""
    return 0.5 if dtype.is_float else (dtype.positive_range + 1) / 2


def scaled(c: Lowering, x: Value, factor: Scalar, offset: Scalar, dtype: DType) -> Value:
    """Compute ``factor * x + offset`` for any number of channels."""
    wide = working_type(x.dtype)
    value = load(x.dtype).cast(wide) * uniform(factor, wide) + uniform(offset, wide)
    return c.pointwise([x], value.cast(dtype))


def scaled_reference(x: Any, factor: float, offset: float, dtype: DType) -> Any:
    """Compute :func:`scaled` in NumPy."""
    wide = working_type(DType.of(x.dtype)).numpy.type
    with np.errstate(all="ignore"):
        return cast_array(x.astype(wide) * wide(factor) + wide(offset), dtype)


_MOST_CHANNELS = 16  # of a stage


def channel_axis(c: Lowering, x: Value) -> tuple[int, int]:
    """Return the axis and the number of channels: three for colours, and others that the operator leaves as they are.

    A number that only the run determines is three, or what the first batch showed.
    """
    at = c.axis(x, "C")
    count = c.likely_extent(x, at, 3)
    hint = "Convert grey images with `color_space_conversion`"
    wanted = f"3 to {_MOST_CHANNELS} channels" if not 3 <= count <= _MOST_CHANNELS else f"{count} channels in every row"
    fits = ex.equal(x.shape[at], count) if 3 <= count <= _MOST_CHANNELS else False
    c.require(fits, f"expected images with {wanted}, got {{0}}. {hint}", x.shape[at])
    return at, min(max(count, 3), _MOST_CHANNELS)  # beyond the limits, the requirement fails every row


def mixed(c: Lowering, x: Value, matrix: Sequence[Sequence[Scalar]], offset: Scalar, dtype: DType) -> Value:
    """Compute ``matrix * x + offset`` over three channels."""
    (at, count), wide = channel_axis(c, x), working_type(x.dtype)
    channels = [load(x.dtype, channel=k).cast(wide) for k in range(3)]
    program: list[Px] = []
    for row in matrix:
        r, g, b = (channel * uniform(m, wide) for channel, m in zip(channels, row, strict=True))
        program.append((r + g + b + uniform(offset, wide)).cast(dtype))
    program += [load(x.dtype, channel=k).cast(dtype) for k in range(3, count)]
    return c.channelled(x, program, at)


def mixed_reference(x: Any, layout: str, matrix: Any, offset: float, dtype: DType) -> Any:
    """Compute :func:`mixed` in NumPy."""
    at = (layout or {3: "HWC", 4: "FHWC"}[x.ndim]).index("C")
    if x.shape[at] < 3:
        raise ValueError(f"expected 3 channels, got {x.shape[at]}")
    wide = working_type(DType.of(x.dtype)).numpy.type
    r, g, b = np.moveaxis(x.astype(wide), at, 0)[:3]
    m = np.asarray(matrix).astype(wide)
    with np.errstate(all="ignore"):
        rows = [r * m[k, 0] + g * m[k, 1] + b * m[k, 2] + wide(offset) for k in range(3)]
    others = cast_array(np.moveaxis(x, at, 0)[3:], dtype)
    return np.moveaxis(np.concatenate([cast_array(np.stack(rows), dtype), others]), 0, at)


def hue_matrix(hue: Scalar, saturation: Scalar, factor: Scalar, order: ImageType) -> list[list[Any]]:
    """Return ``factor * M``, with rows and columns in the order of the channels."""
    plain = ex.is_static(hue) and hue == 0
    theta = hue * (math.pi / 180)
    along, across = (saturation, 0) if plain else (saturation * ex.cos(theta), saturation * ex.sin(theta))
    at = (2, 1, 0) if order == ImageType.BGR else (0, 1, 2)
    return [
        [(float(_KEPT[i, j]) + (along * float(_SCALED[i, j]) + across * float(_TURNED[i, j]))) * factor for j in at]
        for i in at
    ]


def hue_matrix_reference(row: RowContext, factor: float) -> Any:
    """Compute :func:`hue_matrix` in NumPy, from the arguments `hue` and `saturation` if the operator has them."""
    hue = math.radians(row.number("hue")) if "hue" in row.args else 0.0
    saturation = row.number("saturation") if "saturation" in row.args else 1.0
    turn = np.array([[1, 0, 0], [0, math.cos(hue), math.sin(hue)], [0, -math.sin(hue), math.cos(hue)]])
    matrix = _FROM_YIQ @ turn @ np.diag([1, saturation, saturation]) @ _TO_YIQ * factor
    return matrix[::-1, ::-1] if row.args.get("image_type") == ImageType.BGR else matrix


def finite(c: Lowering, *names: str) -> list[Scalar]:
    """Return the node's numbers of these names, which must be finite."""
    numbers = [c.scalar(name) for name in names]
    for name, x in zip(names, numbers, strict=True):
        c.require(ex.isfinite(x), f"expected a finite `{name}`, got {{0}}", x)
    return numbers
