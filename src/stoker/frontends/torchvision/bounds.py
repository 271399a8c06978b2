# SPDX-License-Identifier: Apache-2.0
"""Between which values recorded tensors lie: floats that become bytes do so alike on every machine only if they fit.

What is told of is memory that one tensor alone shows. Sums and products widen by more than what is rounded of them.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from . import recipe
from .tensor import LazyTensor

Bounds = tuple[float, float]

BYTES: Bounds = (0.0, 255.0)
_ROUNDING = 1e-5  # of the larger side; float32 rounds by 6e-8


def of_images(x: LazyTensor) -> Bounds | None:
    """Of images that are recorded; None if it is not known."""
    if x.dtype == torch.uint8:
        return BYTES
    if any(row.patches or row.node.op == recipe.RAW or row.node.floats for row in x._rows):
        return None
    values = [row.table.values for row in x._rows]
    return min(float(v.min()) for v in values), max(float(v.max()) for v in values)


def after(name: str, operands: list[Bounds | None]) -> Bounds | None:
    """Of what a function of `program.py` gives, from those of its operands."""
    does = _DOES.get(name)
    known = [bounds for bounds in operands if bounds is not None]
    if does is None or len(known) != len(operands) or len(known) != (1 if does in (_rounded, _same) else 2):
        return None
    low, high = does(*known)
    room = 0.0 if len(known) == 1 else _ROUNDING * max(abs(low), abs(high))
    return low - room, high + room


def fit_bytes(bounds: Bounds | None) -> bool:
    """Whether all values between are bytes when what is behind the point is left out."""
    return bounds is not None and bounds[0] > -1 and bounds[1] < 256


def _sum(a: Bounds, b: Bounds) -> Bounds:
    return a[0] + b[0], a[1] + b[1]


def _product(a: Bounds, b: Bounds) -> Bounds:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _same(a: Bounds) -> Bounds:
    return a


def _rounded(a: Bounds) -> Bounds:
    return float(round(a[0])), float(round(a[1]))


_DOES: dict[str, Callable[..., Bounds]] = (
    dict.fromkeys(("add", "__add__", "__radd__"), _sum)
    | dict.fromkeys(("mul", "__mul__", "__rmul__"), _product)
    | dict.fromkeys(("torch.round", "round"), _rounded)
    | dict.fromkeys(("roll", "flip"), _same)
)
