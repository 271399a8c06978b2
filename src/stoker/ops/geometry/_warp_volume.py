# SPDX-License-Identifier: Apache-2.0
"""Sampling of volumes through an affine matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.pixel import uniform
from ...contract.step import Launches, Value
from ...contract.types import DType, InterpType
from ..generic.cast import cast_array
from ._volume import spatial_axes, volume_array
from ._warp import warped_type
from ._window import output_type

_ELEMENTS = 1024  # of a block on a GPU (native/device/own_warpvolume.cuh)


def volume_extents(c: Lowering, x: Value) -> tuple[Any, ...]:
    """Return the extents (D, H, W) of a volume, which must have elements."""
    extents = tuple(c.extent(x, name) for name in spatial_axes(c, x))
    for n in extents:
        c.require(n > 0, "expected a volume with elements, got an extent of {0}", n)
    return extents


def warp_volume(c: Lowering, x: Value, matrix: Sequence[Any], size: Sequence[Any]) -> Value:
    """Warp the volume by ``matrix``: rows for x, y and z, from output points to source points, corners at the integers.

    With a fill value elements at the faces are mixed with it, as in DALI.
    """
    layout, fill = c.layout(x), c.const("fill_value")
    kind = c.const("interp_type")
    c.expect(kind != InterpType.INTERP_CUBIC, "expected INTERP_NN or INTERP_LINEAR as `interp_type` of a volume")
    linear = kind == InterpType.INTERP_LINEAR
    dtype = output_type(c.const, x.dtype)
    x = c.cast(x, warped_type(x.dtype, dtype, linear, fill))
    axes = tuple(layout.find(name) for name in "FDHWC")
    shape = list(x.shape)
    for axis, n in zip(axes[1:4], size, strict=True):
        shape[axis] = n
    numbers = _numbers(c, matrix, shape[axes[0]] if axes[0] >= 0 else None)
    flags = (linear, fill is not None)
    blocks = (math.prod(shape) + _ELEMENTS - 1) // _ELEMENTS
    out = c.native(
        "warp_volume", [x, numbers], [(x.dtype, shape, x.layout)], attrs=(*axes, *flags),
        params=(fill or 0.0, *flags, *axes), own=Launches("WarpVolume", {"sample": blocks}),
    )[0]  # fmt: skip
    return c.cast(out, dtype)


def _numbers(c: Lowering, matrix: Sequence[Any], frames: Any) -> Value:
    """Return the matrix as a tensor; one per frame as (F, 12)."""
    if not any(c.differs_by_frame(number) for number in matrix):
        return c.numbers(matrix, DType.FLOAT64)
    c.expect(frames is not None, "expected a sequence of volumes (an axis F) for arguments per frame")
    program = [uniform(number, DType.FLOAT64) for number in matrix]
    shape = (frames, 1, len(program))
    spread = c.stage([], [(DType.FLOAT64, shape, "")], [program], channels=len(program), frames=frames)[0]
    return c.apply("squeeze", spread, axes=(1,))  # type: ignore[no-any-return]


def rotation_of(axis: Sequence[Any], cos: Any, sin: Any) -> list[list[Any]]:
    """Return the rotation about a unit vector (x, y, z), right-handed."""
    x, y, z = axis
    rest = 1 - cos
    return [
        [cos + rest * x * x, rest * x * y - sin * z, rest * x * z + sin * y],
        [rest * y * x + sin * z, cos + rest * y * y, rest * y * z - sin * x],
        [rest * z * x - sin * y, rest * z * y + sin * x, cos + rest * z * z],
    ]


def rotated_size(rotation: Sequence[Sequence[Any]], extents: Sequence[Any]) -> tuple[Any, ...]:
    """Return DALI's canvas (D, H, W): large enough, and each side with the parity of the source's side that gives most.

    Args:
        rotation: rows for x, y and z.
        extents: of the volume, (D, H, W).
    """
    source = list(reversed(extents))
    sides = []
    for row in rotation:
        share = [ex.absolute(v) for v in row]
        n = ex.ceil(share[0] * source[0] + share[1] * source[1] + share[2] * source[2] - 1e-2)
        first = ex.both(share[0] >= share[1], share[0] >= share[2])
        main = ex.where(first, source[0], ex.where(share[1] >= share[2], source[1], source[2]))
        sides.append(n + (n - main) % 2)
    return tuple(reversed(sides))


def about_centre(rotation: Sequence[Sequence[Any]], extents: Sequence[Any], size: Sequence[Any]) -> list[Any]:
    """Return the matrix from the canvas to the volume: the inverse rotation, centre to centre."""
    source, canvas = list(reversed(extents)), list(reversed(size))
    numbers = []
    for k in range(3):
        row = [rotation[j][k] for j in range(3)]
        shift = source[k] / 2 - (row[0] * (canvas[0] / 2) + row[1] * (canvas[1] / 2) + row[2] * (canvas[2] / 2))
        numbers += [*row, shift]
    return numbers


def inverse_volume(m: Sequence[Any]) -> tuple[list[Any], Any]:
    """Return the inverse of a 3x4 matrix and the determinant."""
    (a, b, d, p), (e, f, g, q), (h, i, j, r) = m[:4], m[4:8], m[8:]
    cofactors = [
        [f * j - g * i, d * i - b * j, b * g - d * f],
        [g * h - e * j, a * j - d * h, d * e - a * g],
        [e * i - f * h, b * h - a * i, a * f - b * e],
    ]
    det = a * cofactors[0][0] + b * cofactors[1][0] + d * cofactors[2][0]
    numbers: list[Any] = []
    for row in cofactors:
        u, v, w = (n / det for n in row)
        numbers += [u, v, w, -(u * p + v * q + w * r)]
    return numbers, det


def warp_volume_array(row: RowContext, x: Any, layout: str, matrices: Sequence[Any], size: Sequence[int]) -> Any:
    """Warp volumes in NumPy: all frames by one matrix, or each by its own."""
    own = DType.of(x.dtype)
    linear, fill = row["interp_type"] == InterpType.INTERP_LINEAR, row["fill_value"]
    dtype = output_type(row.args.get, own)
    x = cast_array(x, warped_type(own, dtype, linear, fill))
    frame = iter(range(1 << 30))

    def warped(v: Any) -> Any:
        return _warped(v, matrices[next(frame) if len(matrices) > 1 else 0], size, linear, fill)

    return cast_array(volume_array(x, layout, warped), dtype)


def _warped(x: Any, m: Any, size: Sequence[int], linear: bool, fill: float | None) -> Any:
    """Warp one volume DHWC."""
    m = np.asarray(m, np.float64).reshape(3, 4)
    z, y, u = (g + 0.5 for g in np.indices(tuple(size)))
    at = [m[k, 0] * u + m[k, 1] * y + m[k, 2] * z + m[k, 3] - (0.5 if linear else 0.0) for k in (2, 1, 0)]
    at = [v.clip(-2.0, n + 1.0) for v, n in zip(at, x.shape, strict=False)]
    whole = [np.floor(v).astype(np.int64) for v in at]
    wide = np.float64 if x.dtype == np.int32 else np.float32
    constant = None if fill is None else cast_array(np.float64(fill), DType.of(x.dtype))

    def value(*offsets: int) -> Any:
        where = [w + o for w, o in zip(whole, offsets, strict=True)]
        inside = np.logical_and.reduce([(w >= 0) & (w < n) for w, n in zip(where, x.shape, strict=False)])
        values = x[tuple(w.clip(0, n - 1) for w, n in zip(where, x.shape, strict=False))]
        return values if constant is None else np.where(inside[..., None], values, constant)

    if not linear:
        return value(0, 0, 0)
    rest = [(v - w).astype(wide)[..., None] for v, w in zip(at, whole, strict=True)]

    def between(a: Any, b: Any, t: Any) -> Any:
        return a + (b - a) * t

    def face(dz: int) -> Any:
        lines = [between(value(dz, dy, 0).astype(wide), value(dz, dy, 1).astype(wide), rest[2]) for dy in (0, 1)]
        return between(lines[0], lines[1], rest[1])

    return cast_array(between(face(0), face(1), rest[0]), DType.of(x.dtype))
