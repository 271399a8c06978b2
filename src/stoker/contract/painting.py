# SPDX-License-Identifier: Apache-2.0
"""Masks of polygons and run lengths in plain NumPy, for single samples and as the reference of the native kernels."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

_FINE = 5  # steps of the grid per pixel


def paint_parts(words: npt.NDArray[np.int32], height: int, width: int) -> npt.NDArray[np.int32]:
    """Return the mask ``(height, width, 1)`` of a sample's parts.

    Args:
        words: label, kind (0: a polygon, 1: run lengths), number of words, and the words, for every part.
        height, width: extents of the image.
    """
    columns = np.zeros(height * width, np.int32)  # column by column
    at = 0
    while at < len(words):
        label, kind, size = (int(n) for n in words[at : at + 3])
        own = words[at + 3 : at + 3 + size]
        at += 3 + size
        edges = np.cumsum(own) if kind else _crossings(own.view(np.float32).reshape(-1, 2), height, width)
        toggles = np.bincount(np.asarray(edges, np.int64), minlength=len(columns) + 1)[: len(columns)]
        columns[np.cumsum(toggles) % 2 == 1] = label
    return np.ascontiguousarray(columns.reshape(width, height).T)[..., None]


def _crossings(corners: npt.NDArray[np.float32], height: int, width: int) -> list[int]:
    """Return the positions, column by column, at which the polygon's outline passes the centres of columns."""
    fine = (_FINE * corners.astype(np.float64) + 0.5).astype(np.int64)
    path: list[tuple[int, int]] = []
    for (x0, y0), (x1, y1) in zip(fine, np.roll(fine, -1, axis=0), strict=True):
        path += _walk(int(x0), int(y0), int(x1), int(y1))
    found = []
    for (x, y), (next_x, next_y) in itertools.pairwise(path):
        column, rest = divmod(min(x, next_x) - 2, _FINE)
        if x != next_x and rest == 0 and 0 <= column < width:
            row = (min(y, next_y) + 0.5) / _FINE - 0.5
            found.append(column * height + int(np.ceil(min(max(row, 0.0), float(height)))))
    return found


def _walk(x0: int, y0: int, x1: int, y1: int) -> list[tuple[int, int]]:
    """Return the points of the grid along an edge, one per step of its longer axis."""
    dx, dy = abs(x1 - x0), abs(y1 - y0)
    is_flat = dx >= dy
    is_turned = x0 > x1 if is_flat else y0 > y1
    (ax, ay), (bx, by) = ((x1, y1), (x0, y0)) if is_turned else ((x0, y0), (x1, y1))
    slope: Any = ((by - ay) / dx if dx else 0.0) if is_flat else (bx - ax) / dy
    steps = np.arange(max(dx, dy) + 1)
    other = ((ay if is_flat else ax) + slope * steps + 0.5).astype(np.int64).tolist()
    along = ((ax if is_flat else ay) + steps).tolist()
    points = list(zip(along, other, strict=True) if is_flat else zip(other, along, strict=True))
    return points[::-1] if is_turned else points
