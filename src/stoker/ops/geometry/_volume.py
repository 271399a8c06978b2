# SPDX-License-Identifier: Apache-2.0
"""Volumes as slices and as columns along their depth, so that operators of images filter all three axes.

A volume has the axes D, H, W, perhaps C, and perhaps a leading or inner F. Here its axes are F, D, H, W and C, in this
order, and C is always there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.step import Value, ViewOp

_ORDER = "FDHWC"


def spatial_axes(c: Lowering, x: Value) -> str:
    """Return the names of the axes that an operator works along: DHW for a volume, HW for an image."""
    layout = c.layout(x)
    if "D" not in layout:
        return "HW"
    if not set("DHW") <= set(layout) <= set(_ORDER) or list(filter("DHW".count, layout)) != list("DHW"):
        raise UnsupportedError(
            f"`{c.scope.operator.name}`: expected a volume with the axes D, H, W in this order, perhaps C and F, got "
            f"layout {layout!r}"
        )
    return "DHW"


def unfolded(c: Lowering, x: Value) -> Value:
    """Return the volume with the axes in the order of this module."""
    layout = c.layout(x)
    names = "".join(name for name in _ORDER if name in layout)
    x = c.permute(x, [layout.index(name) for name in names], names)
    if "C" in layout:
        return x
    return c.view(x, [ViewOp("insert", x.rank)], names + "C")


def restored(c: Lowering, x: Value, layout: str) -> Value:
    """Return a volume of this module with the axes of ``layout``."""
    names = x.layout
    if "C" not in layout:
        names = names[:-1]
        x = c.view(x, [ViewOp("drop", x.rank - 1)], names)
    return c.permute(x, [names.index(name) for name in layout], layout)


def each_slice(c: Lowering, x: Value, function: Callable[[Value], Value]) -> Value:
    """Apply an operator of videos to the slices H, W, C, which it sees as frames."""
    if x.rank == 4:
        return c.relabel(function(c.relabel(x, "FHWC")), "DHWC")
    frames, depth = x.shape[:2]
    out = function(_reshaped(c, x, (frames * depth, *x.shape[2:]), "FHWC"))
    return _reshaped(c, out, (frames, depth, *out.shape[1:]), "FDHWC")


def along_depth(c: Lowering, x: Value, function: Callable[[Value], Value]) -> Value:
    """Apply an operator of images to the columns along D, which it sees as the axis H. W has all pixels of a slice."""
    *frames, depth, height, width, channels = x.shape
    names = "FHWC"[-len(frames) - 3 :]
    out = function(_reshaped(c, x, (*frames, depth, height * width, channels), names))
    return _reshaped(c, out, (*frames, out.shape[len(frames)], height, width, channels), x.layout)


def _reshaped(c: Lowering, x: Value, shape: tuple[Any, ...], layout: str) -> Value:
    return c.view(x, [ViewOp("reshape", list=shape)], layout, may_copy=True)


def volume_array(x: Any, layout: str, function: Callable[[Any], Any]) -> Any:
    """Apply ``function`` to every volume as DHWC in NumPy, and restore the layout."""
    names = "".join(name for name in _ORDER if name in layout)
    x = np.transpose(x, [layout.index(name) for name in names])
    x = x if "C" in layout else x[..., None]
    out = np.stack([function(v) for v in x]) if "F" in layout else function(x)
    out = out if "C" in layout else out[..., 0]
    return np.transpose(out, [names.index(name) for name in layout])
