# SPDX-License-Identifier: Apache-2.0
"""Affine sampling in plain NumPy: the reference of the native kernel.

Source of the convention: Pillow's ``Image.transform(size, AFFINE, ...)`` (``Geometry.c``), with channels independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...contract.types import DType
from ..generic.cast import cast_array

Floats = npt.NDArray[np.float64]


def affine_array(x: Any, m: Sequence[float], height: int, width: int, linear: bool, fill: float | None) -> Any:
    """Warp the HWC image ``x`` by ``m`` (output pixel -> source point, pixel corners at the integers)."""
    outside = np.zeros((), x.dtype) if fill is None else cast_array(np.float64(fill), DType.of(x.dtype))
    if x.shape[0] == 0 or x.shape[1] == 0:
        return np.full((height, width, x.shape[2]), outside)
    if linear:
        across, down = np.arange(width) + 0.5, (np.arange(height) + 0.5)[:, None]
        columns = m[0] * across + m[1] * down + m[2]
        rows = m[3] * across + m[4] * down + m[5]
        values = _interpolated(x, columns, rows)
    else:
        columns, rows = _walk(m, height, width)
        picked = [
            np.trunc(v.clip(-1, n)).clip(0, n - 1).astype(int) for v, n in ((rows, x.shape[0]), (columns, x.shape[1]))
        ]
        values = x[picked[0], picked[1]]
    if fill is None:
        return values
    inside = (columns >= 0) & (columns < x.shape[1]) & (rows >= 0) & (rows < x.shape[0])
    return np.where(inside[..., None], values, outside)


def _interpolated(x: Any, columns: Floats, rows: Floats) -> Any:
    (left, right, tx), (top, bottom, ty) = (_neighbours(v, n) for v, n in ((columns, x.shape[1]), (rows, x.shape[0])))
    upper = _between(x[top, left], x[top, right], tx)
    lower = _between(x[bottom, left], x[bottom, right], tx)
    value = upper + (lower - upper) * ty
    return np.trunc(value).astype(np.uint8) if x.dtype == np.uint8 else cast_array(value, DType.of(x.dtype))


def _neighbours(v: Floats, n: int) -> tuple[Any, Any, Any]:
    """Return both neighbours along one axis, and the weight of the second."""
    v = v.clip(0, n) - 0.5
    first = np.floor(v).astype(int)
    return first.clip(0), (first + 1).clip(max=n - 1), (v - first)[..., None]


def _between(a: Any, b: Any, t: Floats) -> Any:
    """Interpolate. float32 subtracts in float32, as Pillow does; integers are computed in double."""
    if a.dtype != np.float32:
        a, b = a.astype(np.float64), b.astype(np.float64)
    return a.astype(np.float64) + (b - a).astype(np.float64) * t


def _walk(m: Sequence[float], height: int, width: int) -> tuple[Floats, Floats]:
    """Return the nearest source pixels. Pillow has three methods, which give different pixels."""
    if m[1] == 0 and m[3] == 0:
        columns = _steps(m[2] + m[0] * 0.5, m[0], width)[None]
        return np.broadcast_to(columns, (height, width)), np.broadcast_to(
            _steps(m[5] + m[4] * 0.5, m[4], height)[:, None], (height, width)
        )
    corners = [(x, y) for x in (0, width) for y in (0, height)]
    if all(abs(x * m[k] + y * m[k + 1] + m[k + 2]) < 32768 for x, y in corners for k in (0, 3)):
        return _fixed(m[:3], height, width), _fixed(m[3:], height, width)
    starts = (m[2] + m[1] * 0.5 + m[0] * 0.5, m[5] + m[4] * 0.5 + m[3] * 0.5)
    columns, rows = (
        np.stack([_steps(first, along, width) for first in _steps(start, down, height)])
        for start, along, down in zip(starts, (m[0], m[3]), (m[1], m[4]), strict=True)
    )
    return columns, rows


def _steps(start: float, step: float, count: int) -> Floats:
    """Return start, start + step, ... by repeated addition."""
    return np.add.accumulate(np.concatenate([[start], np.full(max(count - 1, 0), step)]))[:count]


def _fixed(m: Sequence[float], height: int, width: int) -> Floats:
    """Convert to 16.16 fixed point, wrapping at 32 bits."""
    along, down, start = (int(np.floor(v * 65536 + 0.5)) for v in (m[0], m[1], m[2] + m[0] * 0.5 + m[1] * 0.5))
    value = start + along * np.arange(width)[None] + down * np.arange(height)[:, None]
    wrapped: Floats = (((value + (1 << 31)) % (1 << 32) - (1 << 31)) >> 16).astype(np.float64)
    return wrapped
