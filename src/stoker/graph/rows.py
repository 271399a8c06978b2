# SPDX-License-Identifier: Apache-2.0
"""Form of a CPU stage whose iteration runs along rows, not along the few channels of a pixel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..contract.expr import identity, is_static
from ..contract.pixel import Px, coordinates_of, rewrite, size, tables_of, uniform
from ..contract.step import Stage, Value
from ..contract.types import DType

_MOST_CHANNELS = 4
_LARGEST_PROGRAM = 400  # operations of all channels


def along_rows(body: Stage, values: Sequence[Value]) -> Stage:
    """Return a flat stage as one with channels, if this makes its inner loop longer; else the stage.

    A coordinate of the axis before the last one keeps these two axes from being merged, and the stage would compute the
    last axis's elements, for an image three at a time. With these as channels the loop runs along the other axis.

    Args:
        values: inputs and outputs of the stage.
    """
    flat = [port[0] for port in body.program]
    shapes = {tuple(map(identity, v.shape)) for v in values}
    if body.channels or body.interpolator or any((*body.pre, *body.post)) or len(shapes) != 1 or tables_of(flat):
        return body
    axis, extent = values[0].rank - 1, values[0].shape[-1] if values[0].shape else 0
    if not is_static(extent) or not 1 < extent <= _MOST_CHANNELS or axis - 1 not in coordinates_of(flat):
        return body
    count = int(extent)
    if count * size(flat) > _LARGEST_PROGRAM:
        return body
    program = tuple(tuple(_of_channel(x, k, axis) for k in range(count)) for x in flat)
    return replace(body, program=program, channels=count)


def _of_channel(x: Px, channel: int, axis: int) -> Px:
    """Return a flat expression applied to one channel, whose axis is the last one."""

    def change(leaf: Px) -> Px | None:
        if leaf.op == "load":
            return replace(leaf, channel=channel)
        return uniform(channel, DType.INT32) if leaf.op == "coordinate" and leaf.port == axis else None

    return rewrite(x, change)
