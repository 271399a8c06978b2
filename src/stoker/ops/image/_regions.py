# SPDX-License-Identifier: Apache-2.0
"""Regions of a tensor that are filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.pixel import Px, binary, coordinate, load, select, uniform
from ...contract.step import Value
from ...contract.types import DType

Region = Mapping[int, tuple[Scalar, Scalar]]  # axis -> (start, end), whole numbers; other axes are whole
_MOST_FILLS = 16
_REGIONS_OF_A_STEP = 16  # a program has at most 256 numbers: two per axis of a region, and the fill values


def erased(c: Lowering, x: Value, regions: Sequence[Region], fills: Sequence[Scalar]) -> Value:
    """Fill the regions with one value, or with one for each channel."""
    if not regions:
        return c.view(x, ())
    for first in range(0, len(regions), _REGIONS_OF_A_STEP):
        inside: Px | None = None
        for region in regions[first : first + _REGIONS_OF_A_STEP]:
            here = _inside(x, region)
            inside = here if inside is None else binary("or", inside, here)
        assert inside is not None
        x = c.pointwise([x], select(inside, _fill(c, x, fills), load(x.dtype)))
    return x


def _inside(x: Value, region: Region) -> Px:
    """Return the condition that an element lies in a region."""
    inside: Px | None = None
    for axis, (start, end) in region.items():
        at = coordinate(axis)
        first, last = (ex.clamp(n, 0, x.shape[axis]) for n in (start, end))
        here = binary("and", binary("ge", at, first), binary("lt", at, last))
        inside = here if inside is None else binary("and", inside, here)
    assert inside is not None
    return inside


def _fill(c: Lowering, x: Value, fills: Sequence[Scalar]) -> Px:
    values = [uniform(number, DType.FLOAT64).cast(x.dtype) for number in fills]
    if len(values) == 1:
        return values[0]
    c.expect(0 < len(values) <= _MOST_FILLS, "expected 1 to 16 fill values, got {0}", len(values))
    at = c.axis(x, "C")
    c.require(
        ex.equal(x.shape[at], len(values)), "expected one fill value, or one for each of {1} channels, got {0}",
        len(values), x.shape[at],
    )  # fmt: skip
    fill = values[-1]
    for k in reversed(range(len(values) - 1)):
        fill = select(binary("eq", coordinate(at), k), values[k], fill)
    return fill


def erased_reference(x: Any, regions: Sequence[Mapping[int, tuple[float, float]]], fills: Any, channel: int) -> Any:
    """Apply :func:`erased` in NumPy. ``fills`` are of the type of ``x``, ``channel`` is the axis of the channels."""
    out = np.array(x)
    for region in regions:
        window = [slice(None)] * x.ndim
        for axis, (start, end) in region.items():
            first, last = (int(min(max(n, 0), x.shape[axis])) for n in (start, end))
            window[axis] = slice(first, max(first, last))
        if len(fills) > 1 and len(fills) != x.shape[channel]:
            raise ValueError("expected a fill value for each channel")
        values = fills.reshape([-1 if i == channel else 1 for i in range(x.ndim)]) if len(fills) > 1 else fills
        out[tuple(window)] = values
    return out
