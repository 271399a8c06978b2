# SPDX-License-Identifier: Apache-2.0
"""``slice``: a window by start and end or shape, absolute or relative."""

from __future__ import annotations

from collections.abc import Sequence
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
from ._window import BoundsArguments, OutputTypeArguments, cut_reference, output_type, round_away, take

_STARTS = ("start", "rel_start")
_ENDS = ("end", "rel_end", "shape", "rel_shape")


class SliceArguments(Operator):
    """The limits of a window."""

    axes = arg(
        "int",
        (1, 0),
        many=True,
        per_axis=True,
        per_row=True,
        doc="The axes that the limits are for; negative ones count from the end. Empty: all.",
    )
    axis_names = arg(
        "str", None, doc='The axes by name, for example "HW"; "WH" if the data have these axes and `axes` is not given.'
    )
    start = arg("int", None, many=True, per_axis=True, per_row=True, doc="First element per axis.")
    end = arg("int", None, many=True, per_axis=True, per_row=True, doc="Element after the last per axis.")
    shape = arg("int", None, many=True, per_axis=True, per_row=True, doc="Number of elements per axis.")
    rel_start = arg(
        "float", None, many=True, per_axis=True, per_row=True, doc="First element as a share of the extent."
    )
    rel_end = arg("float", None, many=True, per_axis=True, per_row=True, doc="End as a share of the extent.")
    rel_shape = arg(
        "float", None, many=True, per_axis=True, per_row=True, doc="Number of elements as a share of the extent."
    )
    normalized_anchor = arg("bool", True, doc="Whether a positional anchor of floats is relative.")
    normalized_shape = arg("bool", True, doc="Whether a positional shape of floats is relative.")


class Slice(SliceArguments, BoundsArguments, OutputTypeArguments, name="slice"):
    """Cut a window along some axes. Inputs: data, and optionally anchor and shape. Output: the window, same type.

    ``start``, ``end``, ``shape`` are in elements, ``rel_*`` in shares of the extent. A positional anchor and shape are
    in elements if both are of integer types, as in DALI. Otherwise they are relative unless ``normalized_anchor`` /
    ``normalized_shape`` are False. Limits round half away from zero, as in DALI.
    """

    inputs = (1, 3)
    cases = (
        {"start": (1, 2), "shape": (3, 4), "axes": (0, 1)},
        {"rel_start": (0.25,), "rel_end": (0.75,), "axes": (0,)},
        {"end": (5,), "axes": (1,), "out_of_bounds_policy": "trim_to_shape"},
        {"start": (-2, 3), "shape": (9, 40), "axes": (0, 1), "out_of_bounds_policy": "pad", "fill_values": (7.0,)},
    )

    def lower(self, c: Lowering, x: Value, *limits: Value) -> Value:
        names = [n for n in (*_STARTS, *_ENDS) if c.given(n)]
        if limits and (names or len(limits) != 2):
            raise ArgumentError(
                f"`{self.name}`: expected an anchor and a shape as inputs, or limits by name, got {len(limits)} inputs "
                f"with the data and {', '.join(f'`{n}`' for n in names) or 'no limits by name'}"
            )
        if not limits and not names:
            known = ", ".join(_STARTS + _ENDS)
            raise ArgumentError(f"`{self.name}`: expected limits: {known}, or anchor and shape as inputs")
        for rivals in (_STARTS, _ENDS):
            both = [n for n in rivals if n in names]
            if len(both) > 1:
                raise ArgumentError(f"`{self.name}`: expected one of {', '.join(rivals)}, got {' and '.join(both)}")
        drawn = "axes" in c.scope.edges and not c.given("axis_names")
        axes = [] if drawn else self._axes(c, x)
        number = c.fixed_length("axes") if drawn else len(axes)
        for n in names:
            count = c.length(n)
            if count not in (None, 1, number):
                raise ArgumentError(f"`{self.name}`: expected 1 or {number} elements (axes) in `{n}`, got {count}")
        if drawn:
            windows = self._drawn_windows(c, x, number, limits)
        else:
            windows = {a: self._whole(c, *self._limits(c, x.shape[a], i, limits)) for i, a in enumerate(axes)}
        return c.cast(take(c, x, windows), output_type(c.const, x.dtype))

    def _axes(self, c: Lowering, x: Value) -> list[int]:
        names = c.const("axis_names")
        if names is None and not c.scope_given("axes") and {"H", "W"} <= set(c.layout(x)):
            names = "WH"
        axes = [c.axis(x, n) for n in names] if names else list(c.const("axes")) or list(range(x.rank))
        for axis in axes:
            c.require(-x.rank <= axis < x.rank, "expected axes of a tensor with {0} axes, got {1}", x.rank, axis)
        axes = [a % x.rank for a in axes]
        if len(set(axes)) != len(axes):
            raise ArgumentError(f"`{self.name}`: expected different axes, got {axes}")
        return axes

    def _drawn_windows(
        self, c: Lowering, x: Value, number: int, limits: Sequence[Value]
    ) -> dict[int, tuple[Scalar, Scalar]]:
        """Return the windows of all axes: whole ones, but for the axes that each row names."""
        if number > x.rank:  # before each is compared with each: a tensor of thousands would take hours
            raise ArgumentError(f"`{self.name}`: expected different axes of a tensor with {x.rank}, got {number} axes")
        axes: list[Scalar] = []
        for i in range(number):
            axis = c.scalar("axes", i)
            inside = ex.both(axis >= -x.rank, axis < x.rank)
            c.require(inside, "expected axes of a tensor with {0} axes, got {1}", x.rank, axis)
            axis = ex.where(axis < 0, axis + x.rank, axis)
            for other in axes:
                c.require(ex.different(axis, other), "expected different axes, got {0} twice", axis)
            axes.append(axis)
        windows = {}
        for k, n in enumerate(x.shape):
            start: Scalar = 0
            end = n
            for i, axis in enumerate(axes):
                first, last = self._limits(c, n, i, limits)
                start, end = (ex.where(ex.equal(axis, k), a, b) for a, b in ((first, start), (last, end)))
            windows[k] = self._whole(c, start, end)
        return windows

    def _limits(self, c: Lowering, n: Scalar, i: int, limits: Sequence[Value]) -> tuple[Scalar, Scalar]:
        """Return start and end of window ``i`` on an axis of extent ``n``, before they are rounded."""
        if not limits:
            return self._named(c, n, i)
        in_elements = not any(x.dtype.is_float for x in limits)
        start = c.element(limits[0], i) * (n if c.const("normalized_anchor") and not in_elements else 1)
        return start, start + c.element(limits[1], i) * (n if c.const("normalized_shape") and not in_elements else 1)

    @staticmethod
    def _whole(c: Lowering, start: Scalar, end: Scalar) -> tuple[Scalar, Scalar]:
        """Return start and extent in whole elements."""
        c.require(ex.both(ex.isfinite(start), ex.isfinite(end)), "expected finite limits, got {0} and {1}", start, end)
        start, end = ex.round_away(start), ex.round_away(end)
        c.require(start <= end, "expected a start <= the end, got {0} and {1}", start, end)
        return start, end - start

    @staticmethod
    def _named(c: Lowering, n: Scalar, i: int) -> tuple[Scalar, Scalar]:
        start: Scalar = 0
        if c.given("start"):
            start = c.scalar("start", i)
        elif c.given("rel_start"):
            start = c.scalar("rel_start", i) * n
        if c.given("end"):
            return start, c.scalar("end", i)
        if c.given("rel_end"):
            return start, c.scalar("rel_end", i) * n
        if c.given("shape"):
            return start, start + c.scalar("shape", i)
        if c.given("rel_shape"):
            return start, start + c.scalar("rel_shape", i) * n
        return start, n

    def reference(self, row: RowContext, x: Any, *limits: Any) -> Any:
        names, axes = row["axis_names"], [int(a) for a in np.asarray(row["axes"]).reshape(-1)]
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}.get(x.ndim, "")
        if names is None and axes == [1, 0] and "H" in layout and "W" in layout:
            names = "WH"
        if names:
            axes = [layout.index(n) for n in names]
        axes = axes or list(range(x.ndim))
        windows = {}
        for i, axis in enumerate(axes):
            start, end = _limits(row, x.shape[axis], i, limits)
            windows[axis % x.ndim] = (start, end - start)
        out = cut_reference(row, x, windows, layout)
        return cast_array(out, output_type(row.args.get, DType.of(x.dtype)))


def _limits(row: RowContext, n: int, i: int, limits: Sequence[Any]) -> tuple[int, int]:
    def pick(name: str) -> float | None:
        return None if row[name] is None else row.number(name, i)

    if limits:
        in_elements = all(np.asarray(x).dtype.kind in "biu" for x in limits)
        scale_a, scale_s = (n if row[k] and not in_elements else 1 for k in ("normalized_anchor", "normalized_shape"))
        start = float(np.asarray(limits[0]).reshape(-1)[i]) * scale_a
        end = start + float(np.asarray(limits[1]).reshape(-1)[i]) * scale_s
    else:
        relative = pick("rel_start")
        start = relative * n if relative is not None else pick("start") or 0.0
        choices = (("end", 0.0, 1), ("rel_end", 0.0, n), ("shape", start, 1), ("rel_shape", start, n))
        ends = (base + v * scale for name, base, scale in choices if (v := pick(name)) is not None)
        end = next(ends, float(n))
    return round_away(start), round_away(end)
