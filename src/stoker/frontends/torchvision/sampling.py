# SPDX-License-Identifier: Apache-2.0
"""Where torch samples an image, and what it finds there, addition by addition: the plain twin of native code.

See ``native/torch_warp_point.hpp``. Whether this machine's torch adds up in that order is found in its floats: bytes
rarely show their last bits.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch

from .interpolation import F, fused
from .replay import points

_WIDTH, _HEIGHT = 47, 37
_NUMBERS = (0.042, 0.0093, 0.145, -0.0071, 0.0507, -0.1103, 0.001, -0.002)  # a matrix of six, and what is below it


def looked_at(numbers: Any, projective: bool, width: int, height: int) -> Any:
    """The points of a grid, ``(height, width, 2)``; -1 and 1 are an image's edges."""
    m = np.array(numbers, F)
    first = (0.5, 0.5) if projective else ((1.0 - width) * 0.5, (1.0 - height) * 0.5)
    x, y = np.meshgrid(np.arange(width).astype(F) + F(first[0]), np.arange(height).astype(F) + F(first[1]))
    u, v = (fused(y, b, x * a) + c for a, b, c in (m[:3], m[3:6]))
    if projective:
        below = fused(y, m[7], x * m[6]) + F(1)
        u, v = u / below - F(1), v / below - F(1)
    return np.stack([u, v], axis=-1)


def sampled(image: Any, at: Any) -> Any:
    """What lies between the four neighbours of points, ``(height, width)`` of float32; zeros outside of the image."""
    height, width = image.shape
    x, y = (fused(at[..., axis] + F(1), F(n) / F(2), F(-0.5)) for axis, n in enumerate((width, height)))
    left, top = np.floor(x), np.floor(y)
    w, n = x - left, y - top
    e, s = F(1) - w, F(1) - n
    total: Any = None
    for dy, dx, weight in ((0, 0, e * s), (0, 1, w * s), (1, 0, e * n), (1, 1, w * n)):
        row, column = (top + dy).astype(np.int64), (left + dx).astype(np.int64)
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        value = np.where(inside, image[row.clip(0, height - 1), column.clip(0, width - 1)], F(0))
        total = value * weight if total is None else fused(value, weight, total)
    return total


def finds_torchs_points() -> bool:
    """Whether this machine's torch makes these points, as set now: its products of matrices differ by processor."""
    return _finds_torchs_points(torch.get_num_threads())


@functools.cache
def _finds_torchs_points(threads: int) -> bool:
    def equal(projective: bool) -> bool:
        made = points(_NUMBERS, projective, _WIDTH, _HEIGHT)[0].numpy()
        return np.array_equal(made, looked_at(_NUMBERS, projective, _WIDTH, _HEIGHT))

    return equal(False) and equal(True)


@functools.cache
def samples_as_torch() -> bool:
    """Whether this machine's torch finds these values at given points."""
    rng = np.random.Generator(np.random.PCG64(12))
    image = rng.integers(0, 256, (_HEIGHT, _WIDTH)).astype(F)
    grid = torch.from_numpy(looked_at(_NUMBERS, True, _WIDTH, _HEIGHT))[None]
    found = torch.nn.functional.grid_sample(torch.from_numpy(image)[None, None], grid, align_corners=False)
    return np.array_equal(found[0, 0].numpy(), sampled(image, grid[0].numpy()))
