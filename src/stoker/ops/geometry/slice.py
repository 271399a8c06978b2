# SPDX-License-Identifier: Apache-2.0
"""``slice``: a window by start and end or shape, absolute or relative."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, arg
from ...contract.step import Value


class Slice(Operator, name="slice"):
    """Cut a window along some axes. Inputs: data, and optionally anchor and shape. Output: the window, same type.

    ``start``, ``end``, ``shape`` are in elements, ``rel_*`` in shares of the extent; the positional anchor and shape
    are relative unless ``normalized_anchor`` / ``normalized_shape`` are False. Relative limits round half away from
    zero, as in DALI. The window must lie inside of the data (``out_of_bounds_policy="error"``) or is cut down to it
    (``"trim_to_shape"``); use ``pad`` to extend the data first.
    """

    inputs = (1, 3)
    kind = "gather"
    axes = arg("int", (1, 0), many=True, doc="The axes that the limits are for.")
    axis_names = arg("str", None, doc='The axes by name, for example "HW"; wins over `axes`.')
    start = arg("int", None, many=True, per_row=True, doc="First element per axis.")
    end = arg("int", None, many=True, per_row=True, doc="Element after the last per axis.")
    shape = arg("int", None, many=True, per_row=True, doc="Number of elements per axis.")
    rel_start = arg("float", None, many=True, per_row=True, doc="First element as a share of the extent.")
    rel_end = arg("float", None, many=True, per_row=True, doc="End as a share of the extent.")
    rel_shape = arg("float", None, many=True, per_row=True, doc="Number of elements as a share of the extent.")
    normalized_anchor = arg("bool", True, doc="Whether the positional anchor is relative.")
    normalized_shape = arg("bool", True, doc="Whether the positional shape is relative.")
    out_of_bounds_policy = arg("str", "error", choices=("error", "trim_to_shape"), doc="What to do with windows outside.")
    dtype = arg("dtype", None, doc="Element type of the output; by default the input's.")
    cases = (
        {"start": (1, 2), "shape": (3, 4), "axes": (0, 1)},
        {"rel_start": (0.25,), "rel_end": (0.75,), "axes": (0,)},
        {"end": (5,), "axes": (1,), "out_of_bounds_policy": "trim_to_shape"},
    )

    def lower(self, c: Lowering, x: Value, *limits: Value) -> Value:
        windows = {}
        for i, axis in enumerate(self._axes(c, x, limits)):
            start, extent = self._window(c, x.shape[axis], i, limits)
            if c.const("out_of_bounds_policy") == "trim_to_shape":
                end = ex.clamp(start + extent, 0, x.shape[axis])
                start = ex.clamp(start, 0, x.shape[axis])
                extent = ex.maximum(end - start, 0)
            windows[axis] = (start, extent)
        out = c.slice(x, windows)
        dtype = c.const("dtype")
        return out if dtype is None else c.cast(out, dtype)

    def _axes(self, c: Lowering, x: Value, limits: Sequence[Value]) -> list[int]:
        names = c.const("axis_names")
        axes = [c.axis(x, n) for n in names] if names else list(c.const("axes"))
        if not names and not c.scope_given("axes") and limits and x.layout:
            axes = [c.axis(x, "W"), c.axis(x, "H")]
        for axis in axes:
            c.require(-x.rank <= axis < x.rank, "expected axes of a tensor with {0} axes, got {1}", x.rank, axis)
        return [a % x.rank for a in axes]

    def _window(self, c: Lowering, n: Any, i: int, limits: Sequence[Value]) -> tuple[Any, Any]:
        if limits:
            anchor, shape = c.element(limits[0], i), c.element(limits[1], i) if len(limits) > 1 else n
            relative_start, relative_shape = c.const("normalized_anchor"), c.const("normalized_shape")
            end = (anchor * n if relative_start else anchor) + (shape * n if relative_shape else shape)
            start = ex.round_away(anchor * n if relative_start else anchor)
            return start, ex.round_away(end) - start
        start = c.scalar("start", i) if c.given("start") else 0
        if c.given("rel_start"):
            start = c.scalar("rel_start", i) * n
        if c.given("end"):
            end = c.scalar("end", i)
        elif c.given("rel_end"):
            end = c.scalar("rel_end", i) * n
        elif c.given("shape"):
            end = start + c.scalar("shape", i)
        elif c.given("rel_shape"):
            end = start + c.scalar("rel_shape", i) * n
        else:
            end = n
        c.require(ex.isfinite(start) & ex.isfinite(end) if not (ex.is_static(start) and ex.is_static(end)) else True,
                  "expected finite limits, got {0} and {1}", start, end)  # fmt: skip
        start = ex.round_away(start)
        return start, ex.round_away(end) - start

    def reference(self, row: RowContext, x: Any, *limits: Any) -> Any:
        index = [slice(None)] * x.ndim
        names = row["axis_names"]
        axes = [row.layout.index(n) for n in names] if names else [int(a) for a in np.asarray(row["axes"]).reshape(-1)]
        for i, axis in enumerate(axes):
            start, end = _limits(row, x.shape[axis], i, limits)
            if row["out_of_bounds_policy"] == "trim_to_shape":
                start, end = min(max(start, 0), x.shape[axis]), min(max(end, 0), x.shape[axis])
            if not 0 <= start <= end <= x.shape[axis]:
                raise ValueError(f"expected a window inside the input, got {start} to {end} of {x.shape[axis]}")
            index[axis % x.ndim] = slice(start, end)
        out = x[tuple(index)]
        if row["dtype"] is None:
            return out
        from ..generic.cast import cast_array

        return cast_array(out, row["dtype"])


def _limits(row: RowContext, n: int, i: int, limits: Sequence[Any]) -> tuple[int, int]:
    def pick(name: str) -> float | None:
        return None if row[name] is None else row.number(name, i)

    if limits:
        scale_a, scale_s = n if row["normalized_anchor"] else 1, n if row["normalized_shape"] else 1
        start = float(np.asarray(limits[0]).reshape(-1)[i]) * scale_a
        end = start + float(np.asarray(limits[1]).reshape(-1)[i]) * scale_s
    else:
        relative = pick("rel_start")
        start = relative * n if relative is not None else pick("start") or 0.0
        choices = (("end", 0.0, 1), ("rel_end", 0.0, n), ("shape", start, 1), ("rel_shape", start, n))
        ends = (base + v * scale for name, base, scale in choices if (v := pick(name)) is not None)
        end = next(ends, float(n))
    return round_away(start), round_away(end)


def round_away(x: float) -> int:
    """Half away from zero."""
    return -int(np.floor(-x + 0.5)) if x < 0 else int(np.floor(x + 0.5))
