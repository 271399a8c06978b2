# SPDX-License-Identifier: Apache-2.0
"""``crop``, and the window rule that other operators share."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType
from ..generic.cast import cast_array
from ._window import BoundsArguments, OutputTypeArguments, Windows, cut_reference, output_type, round_away, take

_AXES = (("crop_d", "crop_pos_z", "D"), ("crop_h", "crop_pos_y", "H"), ("crop_w", "crop_pos_x", "W"))


class CropArguments(Operator):
    """The arguments of a crop window."""

    crop = arg(
        "float",
        None,
        many=True,
        per_axis=True,
        per_row=True,
        doc="Window in pixels as (height, width), or (depth, height, width).",
    )
    crop_h = arg("float", 0.0, per_row=True, doc="Height of the window in pixels; 0: the whole height.")
    crop_w = arg("float", 0.0, per_row=True, doc="Width of the window in pixels; 0: the whole width.")
    crop_d = arg("float", 0.0, per_row=True, doc="Depth of the window; 0: the whole depth.")
    crop_pos_x = arg("float", 0.5, per_row=True, doc="Horizontal place: 0 is the left edge, 1 the right one.")
    crop_pos_y = arg("float", 0.5, per_row=True, doc="Vertical place: 0 is the top, 1 the bottom.")
    crop_pos_z = arg("float", 0.5, per_row=True, doc="Place in depth: 0 is the front, 1 the back.")
    rounding = arg(
        "str",
        "round",
        choices=("round", "truncate"),
        doc="Rounding of the window's start: to the nearest pixel (half away from zero), or towards zero.",
    )


def crop_windows(c: Lowering, x: Value) -> Windows:
    """Return the window of the node's crop arguments. It may be larger than ``x``."""
    if c.given("crop"):
        others = [name for name, _, _ in _AXES if c.scope_given(name)]
        if others:
            raise ArgumentError(f"`{c.scope.operator.name}`: expected `crop` or `{others[0]}`, got both")
        if c.fixed_length("crop") not in (1, 2, 3):
            raise ArgumentError(
                f"`{c.scope.operator.name}`: expected `crop` as (height, width) or (depth, height, width)"
            )
    windows = {}
    layout = c.layout(x)
    for name, place, axis in _AXES:
        size = _size(c, name, axis)
        if size is None:
            continue
        at = c.axis(x, axis)
        n, position = x.shape[at], c.scalar(place)
        c.require((position >= 0) & (position <= 1), f"expected `{place}` in [0, 1], got {{0}}", position)
        c.require(ex.isfinite(size), f"expected a finite `{name}`, got {{0}}", size)
        size = ex.where(size < 1, n, ex.floor(size))
        if c.scope.args.get("out_of_bounds_policy", "error") == "error":
            c.require(size <= n, f"expected `{name}` <= {{1}} (the input's extent), got {{0}}", size, n)
        start = position * (n - size)
        windows[layout.index(axis)] = (_whole(start, c.const("rounding")), size)
    return windows


def _whole(start: Scalar, rounding: str) -> Any:
    return ex.trunc(start) if rounding == "truncate" else ex.round_away(start)


def _size(c: Lowering, name: str, axis: str) -> Any:
    if c.given("crop"):
        order = "DHW"[-max(2, c.length("crop") or 0) :]
        return c.scalar("crop", order.index(axis)) if axis in order else None
    return c.scalar(name) if c.scope_given(name) else None


def crop_windows_reference(row: RowContext, x: Any, layout: str) -> dict[int, tuple[int, int]]:
    """Return the same window in NumPy."""
    windows = {}
    for name, place, axis in _AXES:
        if axis not in layout:
            continue
        at = layout.index(axis)
        n = x.shape[at]
        if row["crop"] is not None:
            count = np.asarray(row["crop"]).size
            order = "DHW" if count == 3 else "HW"
            if axis not in order:
                continue
            size = row.number("crop", order.index(axis))
        else:
            size = row.number(name)
        extent = n if size < 1 else int(size)
        start = row.number(place) * (n - extent)
        windows[at] = (int(start) if row["rounding"] == "truncate" else round_away(start), extent)
    return windows


class Crop(CropArguments, BoundsArguments, OutputTypeArguments, name="crop"):
    """Cut a window. Input: an image, video or volume with layout HWC, CHW, FHWC, ..., any type. Output: the window.
    Four axes without names are DHWC, as in DALI, and FHWC if an argument has numbers for each frame.

    The start is ``crop_pos * (input - window)``, rounded half away from zero. Fractional window sizes are truncated,
    and sizes below 1 mean the whole extent, as in DALI. With ``out_of_bounds_policy="pad"``, a larger window's surplus
    is distributed by the same rule.
    """

    default_layouts = ("HW", "HWC", "DHWC", "FHWC")  # as DALI's: four axes are a volume
    cases = (
        {"crop": (5, 7)},
        {"crop_h": 4, "crop_w": 6, "crop_pos_x": 0.0, "crop_pos_y": 1.0},
        {"crop": (5, 7), "crop_pos_x": 0.3, "rounding": "truncate"},
        {"crop_w": 3, "dtype": "float32"},
        {"crop": (40, 7), "out_of_bounds_policy": "pad", "fill_values": (9.0,)},
        {"crop": (40, 7), "out_of_bounds_policy": "trim_to_shape"},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        return c.cast(take(c, x, crop_windows(c, x)), output_type(c.const, x.dtype))

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        out = cut_reference(row, x, crop_windows_reference(row, x, layout), layout)
        return cast_array(out, output_type(row.args.get, DType.of(x.dtype)))
