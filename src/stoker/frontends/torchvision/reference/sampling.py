# SPDX-License-Identifier: Apache-2.0
"""torch's grid points and sampled values, addition by addition: the plain twin of native code.

See ``native/shared/torch_warp_point.hpp``. Trials compare floats, because bytes rarely show the last bits that depend
on the order of additions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from . import trial_cache
from .by_torch import grid_points
from .interpolation import F, fused_multiply_add

_WIDTH, _HEIGHT = 47, 37
# a 2x3 matrix, and the two numbers of perspective
_NUMBERS = (0.042, 0.0093, 0.145, -0.0071, 0.0507, -0.1103, 0.001, -0.002)


def twin_points(numbers: Any, projective: bool, width: int, height: int) -> Any:
    """Return the points of a grid, ``(height, width, 2)``; -1 and 1 are an image's edges."""
    m = np.array(numbers, F)
    first = (0.5, 0.5) if projective else ((1.0 - width) * 0.5, (1.0 - height) * 0.5)
    x, y = np.meshgrid(np.arange(width).astype(F) + F(first[0]), np.arange(height).astype(F) + F(first[1]))
    u, v = (fused_multiply_add(y, b, x * a) + c for a, b, c in (m[:3], m[3:6]))
    if projective:
        below = fused_multiply_add(y, m[7], x * m[6]) + F(1)
        u, v = u / below - F(1), v / below - F(1)
    return np.stack([u, v], axis=-1)


def twin_values(image: Any, at: Any) -> Any:
    """Return the interpolated values at points, ``(height, width)`` of float32; zero outside of the image."""
    height, width = image.shape
    x, y = (fused_multiply_add(at[..., axis] + F(1), F(n) / F(2), F(-0.5)) for axis, n in enumerate((width, height)))
    left, top = np.floor(x), np.floor(y)
    w, n = x - left, y - top
    e, s = F(1) - w, F(1) - n
    total: Any = None
    for dy, dx, weight in ((0, 0, e * s), (0, 1, w * s), (1, 0, e * n), (1, 1, w * n)):
        row, column = (top + dy).astype(np.int64), (left + dx).astype(np.int64)
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        value = np.where(inside, image[row.clip(0, height - 1), column.clip(0, width - 1)], F(0))
        total = value * weight if total is None else fused_multiply_add(value, weight, total)
    return total


def has_equal_points() -> bool:
    """Return whether this machine's torch computes equal points: its matrix products depend on the processor."""
    return trial_cache.find_once(("points", torch.get_num_threads()), _has_equal_points)


def _has_equal_points() -> bool:
    def equal(projective: bool) -> bool:
        result = grid_points(_NUMBERS, projective, _WIDTH, _HEIGHT)[0].numpy()
        return np.array_equal(result, twin_points(_NUMBERS, projective, _WIDTH, _HEIGHT))

    return equal(False) and equal(True)


def has_equal_samples() -> bool:
    """Return whether this machine's torch samples equal values at given points."""
    return trial_cache.find_once(("sampling",), _has_equal_samples)


def _has_equal_samples() -> bool:
    rng = np.random.Generator(np.random.PCG64(12))
    image = rng.integers(0, 256, (_HEIGHT, _WIDTH)).astype(F)
    grid = torch.from_numpy(twin_points(_NUMBERS, True, _WIDTH, _HEIGHT))[None]
    found = torch.nn.functional.grid_sample(torch.from_numpy(image)[None, None], grid, align_corners=False)
    return np.array_equal(found[0, 0].numpy(), twin_values(image, grid[0].numpy()))
