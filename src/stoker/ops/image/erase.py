# SPDX-License-Identifier: Apache-2.0
"""``erase``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType
from ..generic.cast import cast_array
from ._regions import argument, erased, erased_reference


class Erase(Operator, name="erase"):
    """Fill regions of a tensor. Input: any type; axes are named, or it is an image HW or HWC, or `axes` is given.
    Output: the same.

    ``anchor`` and ``shape`` have one number for each axis and region, region by region. A region begins at
    ``int(anchor)`` and ends before ``int(anchor + shape)``, computed in float32; its part outside of the tensor is
    ignored. Other axes are filled whole. Without ``anchor`` regions begin at 0; without both nothing is filled. Rows
    may have different numbers of regions, and any number of them; an empty region fills nothing.

    DALI converts fill values as C does, so that 300 becomes 44 in a byte; here they saturate.
    """

    gives_bfloat16 = takes_bfloat16 = True
    anchor = arg("float", (), many=True, per_row=True, doc="Starts of the regions.")
    shape = arg("float", (), many=True, per_row=True, doc="Extents of the regions.")
    axes = arg("int", None, many=True, per_axis=True, doc="Axes of `anchor` and `shape`, as numbers.")
    axis_names = arg("str", None, doc="The same as names; by default all named axes but C, in the layout's order.")
    fill_value = arg("float", (0.0,), many=True, per_row=True, doc="One value, or one for each channel.")
    centered_anchor = arg("bool", False, doc="`anchor` is the centre of a region.")
    normalized = arg("bool", False, doc="`anchor` and `shape` are shares of the tensor's extents.")
    normalized_anchor = arg("bool", False, doc="`anchor` is a share of the extents.")
    normalized_shape = arg("bool", False, doc="`shape` is a share of the extents.")
    cases = (
        {"anchor": (2.0, 3.0), "shape": (4.0, 5.5)},
        {"anchor": (0.1, 0.2, 0.5, 0.6), "shape": (0.2, 0.3, 0.9, 0.1), "normalized": True, "fill_value": (1, 2, 300)},
        {"anchor": 2.0, "shape": 3.0, "centered_anchor": True, "axes": (1,), "fill_value": 9.0},
        {"shape": (2.0, 0.5), "axis_names": "WH", "normalized_shape": True},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        axes = _axes(c.const("axes"), c.const("axis_names"), c.layout(x), x.rank)
        anchors, shapes = c.length("anchor"), c.length("shape")
        if anchors == 0 and shapes == 0:
            return c.view(x, ())
        if anchors is not None and shapes is not None:
            c.expect(
                anchors in (0, shapes) and shapes % len(axes) == 0,
                "expected a number for each of {0} axes and each region in `anchor` and `shape`, got {1} and {2}",
                len(axes), anchors, shapes,
            )  # fmt: skip
        for name in ("anchor", "shape"):
            numbers = c.pass_on(name)
            wrong = [] if isinstance(numbers, Value) else [n for n in numbers if not math.isfinite(n)]
            c.expect(not wrong, f"expected finite numbers as `{name}`, got {wrong[:1]}")
        whole = c.const("normalized")
        return erased(
            c, x, axes, argument(c, "anchor"), argument(c, "shape"), centered=c.const("centered_anchor"),
            share_anchor=whole or c.const("normalized_anchor"), share_shape=whole or c.const("normalized_shape"),
        )  # fmt: skip

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}.get(x.ndim, "")
        axes = _axes(row["axes"], row["axis_names"], layout, x.ndim)
        shapes = np.asarray(row["shape"], np.float32).reshape(-1)
        anchors = np.asarray(row["anchor"], np.float32).reshape(-1)
        anchors = anchors if anchors.size else np.zeros_like(shapes)
        if not (np.isfinite(anchors).all() and np.isfinite(shapes).all()):
            raise ValueError("expected finite regions")
        extents = np.array([x.shape[axis] for axis in axes], np.float32)
        regions = []
        for anchor, shape in zip(anchors.reshape(-1, len(axes)), shapes.reshape(-1, len(axes)), strict=True):
            size = shape * extents if row["normalized"] or row["normalized_shape"] else shape
            first = anchor * extents if row["normalized"] or row["normalized_anchor"] else anchor
            first = first - size / np.float32(2) if row["centered_anchor"] else first
            ends = np.trunc(first + size)
            regions.append({axis: (float(np.trunc(a)), float(b)) for axis, a, b in zip(axes, first, ends, strict=True)})
        fills = cast_array(np.asarray(row["fill_value"], np.float64).reshape(-1), DType.of(x.dtype))
        return erased_reference(x, regions, fills, layout.find("C"))


def _axes(axes: Sequence[int] | None, names: str | None, layout: str, rank: int) -> list[int]:
    """Return the axes of a region."""
    if axes is not None and names is not None:
        raise ArgumentError("`erase`: expected `axes` or `axis_names`, got both")
    if axes is None:
        if not layout:
            raise ArgumentError("`erase`: expected `axes` for a tensor whose axes have no names")
        wanted = layout.replace("C", "") if names is None else names
        missing = next((name for name in wanted if name not in layout), None)
        if missing is not None:
            raise ArgumentError(f"`erase`: expected axes of the layout {layout!r}, got {missing!r}")
        axes = [layout.index(name) for name in wanted]
    wrong = next((a for a in axes if not -rank <= a < rank), None)
    if wrong is not None:
        raise ArgumentError(f"`erase`: expected axes in [-{rank}, {rank}), got {wrong}")
    found = [a % rank for a in axes]
    if not found or len(set(found)) != len(found):
        raise ArgumentError(f"`erase`: expected each axis once, got {list(axes)}")
    return found
