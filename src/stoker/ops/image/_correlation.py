# SPDX-License-Identifier: Apache-2.0
"""Filters in plain NumPy: the reference of the native correlation.

Sums are in float32, in the order of the filter's elements. Every product is rounded before it is added.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..geometry._borders import BORDERS

TILE_ROWS = 16  # of a GPU block (native/device/own_correlate.cuh)


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
