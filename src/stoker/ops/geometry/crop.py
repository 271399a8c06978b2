# SPDX-License-Identifier: Apache-2.0
"""``crop``, and the window rule that other operators share."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, arg
from ...contract.step import Value
from .slice import round_away


class CropArguments(Operator):
    """The arguments of a crop window."""

    crop = arg("float", None, many=True, per_row=True, doc="Window as (height, width), or (depth, height, width).")
    crop_h = arg("float", 0.0, per_row=True, doc="Height of the window in pixels; 0: the whole height.")
    crop_w = arg("float", 0.0, per_row=True, doc="Width of the window in pixels; 0: the whole width.")
    crop_d = arg("float", 0.0, per_row=True, doc="Depth of the window; 0: the whole depth.")
    crop_pos_x = arg("float", 0.5, per_row=True, doc="Horizontal place: 0 is the left edge, 1 the right one.")
    crop_pos_y = arg("float", 0.5, per_row=True, doc="Vertical place: 0 is the top, 1 the bottom.")
    crop_pos_z = arg("float", 0.5, per_row=True, doc="Place in depth: 0 is the front, 1 the back.")
    rounding = arg("str", "round", choices=("round", "truncate"), doc="How the window's start becomes a whole number.")


def crop_window(c: Lowering, x: Value) -> Value:
    """``x`` cut as the crop arguments of the node say; a window larger than the input is an error."""
    windows = {}
    layout = c.layout(x)
    for name, place, axis in (("crop_h", "crop_pos_y", "H"), ("crop_w", "crop_pos_x", "W"), ("crop_d", "crop_pos_z", "D")):
        if axis not in layout:
            continue
        size = _size(c, name, axis)
        if size is None:
            continue
        at = layout.index(axis)
        n, position = x.shape[at], c.scalar(place)
        c.require((position >= 0) & (position <= 1), f"expected `{place}` in [0, 1], got {{0}}", position)
        c.require(ex.isfinite(size), f"expected a finite `{name}`, got {{0}}", size)
        size = ex.where(size < 1, n, ex.floor(size))
        c.require(size <= n, f"expected `{name}` <= {{1}} (the input's extent), got {{0}}", size, n)
        start = position * (n - size)
        windows[at] = (ex.trunc(start) if c.const("rounding") == "truncate" else ex.round_away(start), size)
    return c.slice(x, windows) if windows else x


def _size(c: Lowering, name: str, axis: str) -> Any:
    if c.given("crop"):
        count = c.length("crop")
        if count == 1:
            return c.scalar("crop") if axis != "D" else None
        order = "HW" if count == 2 else "DHW"
        return c.scalar("crop", order.index(axis)) if axis in order else None
    return c.scalar(name) if c.scope_given(name) else None


def crop_reference(row: RowContext, x: Any, layout: str) -> Any:
    """The same in NumPy."""
    index = [slice(None)] * x.ndim
    for name, place, axis in (("crop_h", "crop_pos_y", "H"), ("crop_w", "crop_pos_x", "W"), ("crop_d", "crop_pos_z", "D")):
        if axis not in layout:
            continue
        at = layout.index(axis)
        n = x.shape[at]
        if row["crop"] is not None:
            values = np.asarray(row["crop"], float).reshape(-1)
            order = "HW" if len(values) <= 2 else "DHW"
            if axis not in order:
                continue
            size = float(values[order.index(axis) if len(values) > 1 else 0])
        else:
            size = row.number(name)
        size = n if size < 1 else int(size)
        if size > n:
            raise ValueError(f"expected a window inside the input, got {size} of {n}")
        start = row.number(place) * (n - size)
        start = int(start) if row["rounding"] == "truncate" else round_away(start)
        index[at] = slice(start, start + size)
    return x[tuple(index)]


class Crop(CropArguments, name="crop"):
    """Cut a window. Input: an image, video or volume with layout HWC, CHW, FHWC, ..., any type. Output: the window.

    The start is ``crop_pos * (input - window)``, rounded half away from zero; fractional window sizes are truncated and
    sizes below 1 mean the whole extent, as in DALI. Windows larger than the input are an error, or with
    ``out_of_bounds_policy="trim_to_shape"`` cut down to it.
    """

    kind = "gather"
    out_of_bounds_policy = arg("str", "error", choices=("error", "trim_to_shape"), doc="What to do with larger windows.")
    dtype = arg("dtype", None, doc="Element type of the output; by default the input's.")
    cases = (
        {"crop": (5, 7)},
        {"crop_h": 4, "crop_w": 6, "crop_pos_x": 0.0, "crop_pos_y": 1.0},
        {"crop": (5, 7), "crop_pos_x": 0.3, "rounding": "truncate"},
        {"crop_w": 3, "dtype": "float32"},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        if c.const("out_of_bounds_policy") == "trim_to_shape":
            x = _trimmed(c, x)
        else:
            x = crop_window(c, x)
        dtype = c.const("dtype")
        return x if dtype is None else c.cast(x, dtype)

    def reference(self, row: RowContext, x: Any) -> Any:
        from ..generic.cast import cast_array

        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        if row["out_of_bounds_policy"] == "trim_to_shape":
            row = RowContext(_trim_arguments(row, x, layout), layouts=row.layouts)
        out = crop_reference(row, x, layout)
        return out if row["dtype"] is None else cast_array(out, row["dtype"])


def _trimmed(c: Lowering, x: Value) -> Value:
    layout, windows = c.layout(x), {}
    for name, place, axis in (("crop_h", "crop_pos_y", "H"), ("crop_w", "crop_pos_x", "W"), ("crop_d", "crop_pos_z", "D")):
        size = _size(c, name, axis) if axis in layout else None
        if size is None:
            continue
        at = layout.index(axis)
        n = x.shape[at]
        size = ex.minimum(ex.where(size < 1, n, ex.floor(size)), n)
        start = c.scalar(place) * (n - size)
        windows[at] = (ex.trunc(start) if c.const("rounding") == "truncate" else ex.round_away(start), size)
    return c.slice(x, windows)


def _trim_arguments(row: RowContext, x: Any, layout: str) -> dict[str, Any]:
    args = dict(row.args)
    if args["crop"] is not None:
        values = np.asarray(args["crop"], float).reshape(-1)
        order = "HW" if len(values) <= 2 else "DHW"
        values = np.resize(values, len(order))
        args["crop"] = tuple(min(v, x.shape[layout.index(a)]) for v, a in zip(values, order, strict=True))
    for name, axis in (("crop_h", "H"), ("crop_w", "W"), ("crop_d", "D")):
        if axis in layout:
            args[name] = min(row.number(name), x.shape[layout.index(axis)])
    return args
