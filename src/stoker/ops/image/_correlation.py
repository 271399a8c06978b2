# SPDX-License-Identifier: Apache-2.0
"""Filters in plain NumPy: the reference of the native correlation.

Sums are in float32, in the order of the filter's elements. Every product is rounded before it is added.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...contract.expr import Scalar
from ..geometry._borders import BORDERS

_TILE = (16, 128)  # rows and values per GPU block (native/device/own_correlate.cuh)


def tiles(shape: Sequence[Scalar], axes: tuple[int, int, int, int]) -> Scalar:
    """Return the number of GPU blocks for an image. Adjacent channels share a block."""
    frames, height, width, channels = (1 if axis < 0 else shape[axis] for axis in axes)
    planes, inner = (frames, channels) if axes[3] < 0 or axes[3] > axes[2] else (frames * channels, 1)
    down = (height + _TILE[0] - 1) // _TILE[0]
    return planes * down * ((width * inner + _TILE[1] - 1) // _TILE[1])


def correlate_array(
    x: Any, weights: Any, top: int, left: int, shape: tuple[int, int], border: str, fill: float = 0.0
) -> Any:
    """Return the filtered HWC image as float32 of size ``shape``.

    ``weights`` begin ``top`` above and ``left`` of each position.
    """
    rows, columns = (
        np.arange(-before, n + w - 1 - before) for before, n, w in zip((top, left), shape, weights.shape, strict=True)
    )
    rows, row_inside = _positions(rows, x.shape[0], border)
    columns, column_inside = _positions(columns, x.shape[1], border)
    wide = x.astype(np.float32)[np.ix_(rows, columns)]
    wide[~row_inside] = np.float32(fill)
    wide[:, ~column_inside] = np.float32(fill)
    out = np.zeros((*shape, x.shape[2]), np.float32)
    with np.errstate(all="ignore"):
        for i, j in np.ndindex(*weights.shape):
            out += wide[i : i + shape[0], j : j + shape[1]] * np.float32(weights[i, j])
    return out


def _positions(at: Any, size: int, border: str) -> tuple[Any, Any]:
    """Return the source positions, and a mask of those inside a constant border."""
    inside = (at >= 0) & (at < size)
    if border == "constant":
        return at.clip(0, size - 1), inside
    before, after = max(-int(at.min(initial=0)), 0), max(int(at.max(initial=0)) - size + 1, 0)
    found = np.pad(np.arange(size), (before, after), mode=BORDERS[border])  # type: ignore[call-overload]
    return found[at + before], np.ones_like(inside)
