# SPDX-License-Identifier: Apache-2.0
"""Bounds of the values of recorded tensors.

Floats become bytes equally on every machine only if they fit. Bounds apply to memory that a single tensor shows. The
bounds of sums and products are widened by more than the rounding error.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from ..ir import recipe
from .tensor import LazyTensor

Bounds = tuple[float, float]

BYTES: Bounds = (0.0, 255.0)
_ROUNDING = 1e-5  # of the larger side; float32 rounds by 6e-8


def image_bounds(x: LazyTensor) -> Bounds | None:
    """Return the bounds of recorded images; None if they are unknown."""
    if x.dtype == torch.uint8:
        return BYTES
    if any(row.patches or row.node.op == recipe.RAW or row.node.is_float for row in x._rows):
        return None
    values = [row.table.values for row in x._rows]
    return min(float(v.min()) for v in values), max(float(v.max()) for v in values)


def result_bounds(name: str, operands: list[Bounds | None]) -> Bounds | None:
    """Return the bounds of a result of `collation/program.py`'s function ``name``, from those of its operands."""
    does = _RULES.get(name)
    known = [bounds for bounds in operands if bounds is not None]
    if does is None or len(known) != len(operands) or len(known) != (1 if does in (_rounded, _same) else 2):
        return None
    low, high = does(*known)
    room = 0.0 if len(known) == 1 else _ROUNDING * max(abs(low), abs(high))
    return low - room, high + room


def fits_bytes(bounds: Bounds | None) -> bool:
    """Return whether all values within the bounds are bytes after truncation."""
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


_RULES: dict[str, Callable[..., Bounds]] = (
    dict.fromkeys(("add", "__add__", "__radd__"), _sum)
    | dict.fromkeys(("mul", "__mul__", "__rmul__"), _product)
    | dict.fromkeys(("torch.round", "round"), _rounded)
    | dict.fromkeys(("roll", "flip"), _same)
)
