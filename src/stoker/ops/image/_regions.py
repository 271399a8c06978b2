# SPDX-License-Identifier: Apache-2.0
"""Regions of a tensor that are filled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.step import Launches, Value
from ...contract.types import DType

_ELEMENTS, _BLOCKS = 16384, 8  # of a block, and of a region, on a GPU (native/device/own_fillregions.cuh)


def erased(
    c: Lowering, x: Value, axes: Sequence[int], anchor: Value, shape: Value,
    *, share_anchor: bool = False, share_shape: bool = False, centered: bool = False,
    whole: bool = False,
) -> Value:  # fmt: skip
    """Fill any number of regions with the argument ``fill_value``: one value, or one for each channel.

    Args:
        c: the builder.
        x: the tensor.
        axes: the axes of a region; it has the other ones whole.
        anchor: starts of the regions, a number for each axis and region; no elements: all are 0.
        shape: extents of the regions.
        share_anchor: starts are shares of the tensor's extents.
        share_shape: extents are.
        centered: starts are centres.
        whole: all numbers are whole, and computed exactly instead of in float32.
    """
    fills = argument(c, "fill_value")
    inputs = (anchor, shape, fills)
    by_frame = tuple(value.per_frame for value in inputs)
    c.expect(not any(by_frame) or c.layout(x)[:1] == "F", "a per-frame argument needs a video (a leading F axis)")
    count = _count_per_frame(fills)
    if ex.is_static(count):
        c.expect(count > 0, "expected a fill value, got an empty list")
        if count > 1:
            channels = x.shape[c.axis(x, "C")]
            text = "expected one fill value, or one for each of {1} channels, got {0}"
            c.require(ex.equal(channels, count), text, count, channels)
    channel = c.layout(x).find("C")
    regions = (x.shape[0] if any(by_frame) else 1) * ex.floor(_count_per_frame(shape) / len(axes))
    table, numbers = c.native(
        "region_table", [c.with_properties(value, per_frame=False) if value.per_frame else value for value in inputs],
        [(DType.INT64, (regions, x.rank, 2), ""), (DType.FLOAT64, (x.shape[0] if by_frame[2] else 1, count), "")],
        attrs=(tuple(axes), (share_anchor, share_shape, centered, whole), by_frame), params=x.shape,
    )  # fmt: skip
    passes = {"copy": ex.ceil(math.prod(x.shape) / _ELEMENTS), "fill": regions * _BLOCKS}
    return c.native(
        "fill_regions", [x, table, numbers], [(x.dtype, x.shape, x.layout)], params=(channel,),
        own=Launches("FillRegions", passes),
    )[0]  # fmt: skip


def argument(c: Lowering, name: str) -> Value:
    """Return a numeric argument as a tensor."""
    given = c.pass_on(name)
    return given if isinstance(given, Value) else c.constant(np.asarray(given, np.float64).reshape(-1))


def _count_per_frame(value: Value) -> Scalar:
    """Return the number of elements, of a frame if the value is per frame."""
    return math.prod(value.shape[1:] if value.per_frame else value.shape)


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
