# SPDX-License-Identifier: Apache-2.0
"""Overlap of rotated boxes in plain Python, for references."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...contract.sums import sum_in_order


def rotated_in(seed: int, count: int, side: float = 100.0) -> Any:
    """Return random rotated boxes: centre, width, height, degrees."""
    rng = np.random.default_rng(seed)
    sizes = rng.uniform(10, side / 2, (count, 2))
    parts = [rng.uniform(0, side, (count, 2)), sizes, rng.uniform(-180, 180, (count, 1))]
    return np.concatenate(parts, 1).astype(np.float32)


def corners_of(box: Any) -> list[complex]:
    """Return the corners of a rotated box as complex numbers, in the order of a positive angle."""
    x, y, w, h, angle = (float(v) for v in box)
    turn = complex(math.cos(math.radians(angle)), math.sin(math.radians(angle)))
    return [complex(x, y) + turn * complex(i * w / 2, k * h / 2) for i, k in ((-1, -1), (1, -1), (1, 1), (-1, 1))]


def rotated_iou(a: Any, b: Any) -> float:
    """Return the intersection of two rotated boxes over their union."""
    polygon, other = corners_of(a), corners_of(b)
    for start, end in zip(other, other[1:] + other[:1], strict=True):
        sides = [((end - start).conjugate() * (p - start)).imag for p in polygon]  # positive: inside of this edge
        clipped = []
        for i, p in enumerate(polygon):
            q, s, t = polygon[i - 1], sides[i], sides[i - 1]
            if (s >= 0) != (t >= 0):
                clipped.append(q + (p - q) * (t / (t - s)))
            if s >= 0:
                clipped.append(p)
        polygon = clipped
    both = sum_in_order((p.conjugate() * q).imag for p, q in zip(polygon, polygon[1:] + polygon[:1], strict=True)) / 2
    union = float(a[2]) * float(a[3]) + float(b[2]) * float(b[3]) - both
    return both / union if union else math.nan
