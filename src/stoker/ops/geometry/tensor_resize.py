# SPDX-License-Identifier: Apache-2.0
"""``tensor_resize``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.expr import Scalar, is_static
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.resizing import FilterArguments
from ...contract.step import Interpolator, Value, ViewOp
from ...contract.types import DType, InterpType
from ..generic.cast import cast_array
from ._resample_reference import resize_array
from .resize import Size, filters, sampled_type

_LARGEST = 1 << 24
_MOST = 3
_ROUNDING = ("round", "truncate", "ceil")
_MODES = ("default", "stretch", "not_larger", "not_smaller")


class TensorResize(FilterArguments, name="tensor_resize"):
    """Resize a tensor along one to three axes, of any layout. Input: any type. Output: the same axes and type, or
    ``dtype``.

    Two axes at most are resampled together, with the bits of `resize`; of three axes the last one is resampled after
    the others, in float32, with one rounding at the end. A size of 0 keeps the extent, or with ``mode`` "default" the
    average scale of the given ones; a negative size or scale mirrors the axis.
    """

    sizes = arg("float", None, many=True, per_axis=True, per_row=True, doc="Output extents of the axes.")
    scales = arg(
        "float", None, many=True, per_axis=True, per_row=True, doc="Output extents as multiples of the input's."
    )
    axes = arg(
        "int", None, many=True, per_axis=True, doc="Axes to resize; negative ones count from the end. By default all."
    )
    axis_names = arg("str", "", doc="Letters of the axes in the layout, instead of `axes`.")
    alignment = arg(
        "float", (0.5,), many=True, per_axis=True, per_row=True,
        doc="Place of the region that keeps its position if the extent is rounded: 0 start, 1 end.",
    )  # fmt: skip
    size_rounding = arg("str", "round", choices=_ROUNDING, doc="Rounding of extents: round, truncate or ceil.")
    mode = arg("str", "default", choices=_MODES, doc="Meaning of several sizes, as for `resize`.")
    max_size = arg(
        "float", None, many=True, per_axis=True, doc="Limit of the output extents, one or one for each axis."
    )
    subpixel_scale = arg("bool", True, doc="The region follows the rounding of the extent, so that the scale is exact.")
    roi_start = arg("float", None, many=True, per_axis=True, per_row=True, doc="Start of the region, along each axis.")
    roi_end = arg(
        "float", None, many=True, per_axis=True, per_row=True, doc="End of the region; before the start: mirrored."
    )
    roi_relative = arg("bool", False, doc="The region is relative to the extents.")
    dtype = arg("dtype", None, doc="Element type of the output; by default the input's.")
    cases = (
        {"sizes": (7, 9), "axes": (0, 1)},
        {"scales": (1.3, -0.6), "axis_names": "HW", "interp_type": "INTERP_CUBIC", "size_rounding": "ceil"},
        {"sizes": (5,), "axes": (1,), "dtype": "float32", "alignment": (0.0,)},
        {"sizes": (6, 8, 4), "mode": "stretch"},
        {"sizes": (0, 5), "axes": (-1, 0), "interp_type": "INTERP_NN"},
        {"sizes": (20, 30), "axes": (0, 1), "mode": "not_larger", "max_size": (18.0,)},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows | None:
        return None

    def lower(self, c: Lowering, x: Value) -> Value:
        axes = _axes(c.const("axes"), c.const("axis_names"), x.rank, c.layout(x))
        numbers = _Numbers(c, [x.shape[a] for a in axes])
        size = _plan(numbers, c.require)
        dtype = x.dtype if c.const("dtype") is None else c.const("dtype")
        kinds = filters(c, size, c.require)
        nearest = all(is_static(kind) and kind == InterpType.INTERP_NN for kind in kinds)
        out = c.cast(x, sampled_type(x.dtype, DType.FLOAT if len(axes) > 2 else dtype, nearest))
        for part in _pairs(axes):
            out = self._resampled(c, out, [axes[k] for k in part], [_of_axis(size, kinds, k) for k in part])
        return c.cast(out, dtype)

    @staticmethod
    def _resampled(c: Lowering, x: Value, axes: Sequence[int], along: Sequence[tuple[Any, ...]]) -> Value:
        """Resample one or two axes. The axes become H and W of frames with channels."""
        others = [a for a in range(x.rank) if a not in axes]
        leading = [a for a in others if a < axes[0]]
        trailing = [a for a in others if a >= axes[0]]
        order = [*leading, *axes, *trailing]
        moved = c.permute(x, order, "") if order != sorted(order) else x
        counts = [math.prod([x.shape[a] for a in group]) for group in (leading, trailing)]
        inner = [x.shape[a] for a in axes] + [1] * (2 - len(axes))
        video = c.view(moved, [ViewOp("reshape", list=(counts[0], *inner, counts[1]))], "FHWC", may_copy=True)
        along = [*along, *[(1, 0, 1, InterpType.INTERP_LINEAR)] * (2 - len(axes))]
        (height, y0, y1, fy), (width, x0, x1, fx) = along
        sampler = Interpolator("resample", (y0, y1, x0, x1, fy, fx, c.const("antialias")))
        sampled = c.sample(video, sampler, height, width)
        extents = [x.shape[a] for a in leading] + [height, width][: len(axes)] + [x.shape[a] for a in trailing]
        out = c.view(sampled, [ViewOp("reshape", list=tuple(extents))], "", may_copy=True)
        if order != sorted(order):
            out = c.permute(out, [order.index(i) for i in range(x.rank)], "")
        return c.relabel(out, x.layout)

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}.get(x.ndim, "")
        axes = _axes(row["axes"], row["axis_names"], x.ndim, layout)
        size = _plan(_Numbers(row, [x.shape[a] for a in axes]), _refuse)
        dtype = DType.of(x.dtype) if row["dtype"] is None else row["dtype"]
        kinds = [int(k) for k in filters(_Numbers(row, []), size, _refuse)]
        nearest = set(kinds) == {InterpType.INTERP_NN}
        out = cast_array(x, sampled_type(DType.of(x.dtype), DType.FLOAT if len(axes) > 2 else dtype, nearest))
        for part in _pairs(axes):
            own = [axes[k] for k in part]
            moved = np.moveaxis(out, own, range(len(own)))
            shape = (*moved.shape[: len(own)], *[1] * (2 - len(own)), -1)
            pad = [1] * (2 - len(own))
            found = resize_array(
                moved.reshape(shape) if moved.size else moved.reshape((*shape[:-1], 0)), "HWC",
                [*(int(size.out[k]) for k in part), *pad], [*(size.low[k] for k in part), *[0] * len(pad)],
                [*(size.high[k] for k in part), *pad], [*(kinds[k] for k in part), *[1] * len(pad)], row["antialias"],
            )  # fmt: skip
            extents = [int(size.out[k]) for k in part]
            out = np.moveaxis(found.reshape((*extents, *moved.shape[len(own) :])), range(len(own)), own)
        return cast_array(out, dtype)


class _Numbers:
    """Arguments of the axes, for the symbolic and the plain form.

    Attributes:
        extents: extents of the axes to resize.
    """

    def __init__(self, source: Any, extents: Sequence[Scalar]) -> None:
        self._source, self.extents = source, extents
        self._symbolic = isinstance(source, Lowering)

    def given(self, name: str) -> bool:
        return bool(self._source.given(name)) if self._symbolic else self._source[name] is not None

    def const(self, name: str) -> Any:
        return self._source.const(name) if self._symbolic else self._source[name]

    def scalar(self, name: str, index: int = 0) -> Any:
        return self._source.scalar(name, index) if self._symbolic else self._source.number(name, index)

    def length(self, name: str) -> int:
        if self._symbolic:
            return int(self._source.fixed_length(name))
        return int(np.asarray(self._source[name]).size)


def _refuse(condition: Any, text: str, *values: Any) -> None:
    if not condition:
        raise ArgumentError(text.format(*values))


def _axes(axes: Any, names: str, rank: int, layout: str) -> list[int]:
    """Return the axes to resize."""
    if axes is not None and names:
        raise ArgumentError("`tensor_resize`: expected `axes` or `axis_names`, got both")
    if names:
        missing = [name for name in names if name not in layout]
        if missing:
            raise ArgumentError(
                f"`tensor_resize`: expected letters of the layout {layout!r} as `axis_names`, got {names!r}"
            )
        found = [layout.index(name) for name in names]
    else:
        found = list(range(rank) if axes is None else axes)
        if any(not -rank <= a < rank for a in found):
            raise ArgumentError(f"`tensor_resize`: expected `axes` from {-rank} to {rank - 1}, got {axes}")
        found = [a % rank for a in found]
    if not 1 <= len(found) <= _MOST or len(set(found)) < len(found):
        text = "expected one to three different axes; name them by `axes` or `axis_names`"
        raise ArgumentError(f"`tensor_resize`: {text}, got {found}")
    return found


def _pairs(axes: Sequence[int]) -> list[list[int]]:
    """Return the axes (as numbers in the list of axes) that are resampled together, in the order of the tensor."""
    order = sorted(range(len(axes)), key=lambda k: axes[k])
    return [order[:2], order[2:]] if len(order) > 2 else [order]


def _of_axis(size: Size, kinds: Sequence[Any], k: int) -> tuple[Any, ...]:
    return size.out[k], size.low[k], size.high[k], kinds[k]


def _plan(a: _Numbers, require: Any) -> Size:
    """Return output extents and regions."""
    count = len(a.extents)
    for name in ("sizes", "scales", "roi_start", "roi_end", "alignment", "max_size"):
        if a.given(name):
            have = a.length(name)
            wanted = (count,) if name in ("roi_start", "roi_end", "scales") else (1, count)
            require(have in wanted, f"expected `{name}` with {count} numbers, one for each axis, got {have}")
    require(a.given("sizes") != a.given("scales"), "expected `sizes` or `scales`")
    require(a.given("roi_start") == a.given("roi_end"), "expected `roi_start` and `roi_end` together")
    low, high = [0] * count, list(a.extents)
    if a.given("roi_start"):
        for k, n in enumerate(a.extents):
            factor = n if a.const("roi_relative") else 1
            low[k], high[k] = (a.scalar(name, k) * factor for name in ("roi_start", "roi_end"))
            finite = ex.both(ex.isfinite(low[k]), ex.isfinite(high[k]))
            require(finite, "expected a finite region, got {0} to {1}", low[k], high[k])
            low[k], high[k] = ex.clamp(low[k], 0, n), ex.clamp(high[k], 0, n)
    source = [ex.absolute(h - s) for s, h in zip(low, high, strict=True)]
    for n in source:
        require(n > 0, "expected a region (or tensor) with at least one element, got an extent of {0}", n)
    out: list[Any] = []
    for k, exact in enumerate(_exact(a, source, require)):
        require(ex.isfinite(exact), "expected a finite size, got {0}", exact)
        step = {"round": ex.round_away, "truncate": ex.floor, "ceil": ex.ceil}[a.const("size_rounding")]
        magnitude = ex.maximum(step(ex.absolute(exact)), 1)
        require(magnitude <= _LARGEST, "expected a size of at most 2**24, got {0}", magnitude)
        if a.const("subpixel_scale"):
            # The region grows or shrinks about the aligned place by the effect of rounding on the extent.
            place = a.scalar("alignment", k)
            require(ex.both(place >= 0, place <= 1), "expected `alignment` from 0 to 1, got {0}", place)
            stretch = magnitude / ex.maximum(ex.absolute(exact), 1e-9)
            middle, whole = (1 - place) * low[k] + place * high[k], (high[k] - low[k]) * stretch
            low[k], high[k] = middle - place * whole, middle + (1 - place) * whole
        low[k], high[k] = ex.where(exact < 0, high[k], low[k]), ex.where(exact < 0, low[k], high[k])
        out.append(magnitude)
    return Size(out, low, high)


def _exact(a: _Numbers, source: list[Any], require: Any) -> list[Any]:
    """Return the extents before rounding, negative where the axis is mirrored."""
    every = range(len(source))
    if a.given("scales"):
        scales = [a.scalar("scales", k) for k in every]
        for s in scales:
            require(ex.both(ex.isfinite(s), ex.different(s, 0)), "expected finite `scales` other than 0, got {0}", s)
        return [s * n for s, n in zip(scales, source, strict=True)]
    wanted = [a.scalar("sizes", k) for k in every]
    for w in wanted:
        require(ex.isfinite(w), "expected finite `sizes`, got {0}", w)
    ratio = [ex.absolute(w) / n for w, n in zip(wanted, source, strict=True)]
    scale = _scale(a, wanted, source, ratio)
    exact = []
    for k in every:
        unchanged = ex.equal(scale[k], ratio[k])  # a requested extent is exact, whatever the product rounds to
        magnitude = ex.where(unchanged, ex.absolute(wanted[k]), scale[k] * source[k])
        exact.append(ex.where(wanted[k] < 0, -magnitude, magnitude))
    return exact


def _scale(a: _Numbers, wanted: list[Any], source: list[Any], ratio: list[Any]) -> list[Any]:
    """Return the scale of each axis by the mode and `max_size`."""
    every = range(len(source))
    mode, given = a.const("mode"), [ex.different(w, 0) for w in wanted]
    if mode == "stretch":
        scale = [ex.where(g, r, 1) for g, r in zip(given, ratio, strict=True)]
    elif mode == "default":
        present = sum((ex.where(g, 1, 0) for g in given), 0)
        total = sum((ex.where(g, r, 0) for g, r in zip(given, ratio, strict=True)), 0)
        average = ex.where(present > 0, total / ex.maximum(present, 1), 1)
        scale = [ex.where(g, r, average) for g, r in zip(given, ratio, strict=True)]
    else:
        pick, none = (ex.minimum, math.inf) if mode == "not_larger" else (ex.maximum, 0)
        one: Any = none
        for g, r in zip(given, ratio, strict=True):
            one = pick(one, ex.where(g, r, none))
        one = ex.where(ex.both(ex.isfinite(one), one > 0), one, 1)
        scale = [one for _ in every]
    limits = a.const("max_size")
    if limits is not None:
        limit = [limits[k if len(limits) > 1 else 0] / source[k] for k in every]
        if mode in ("default", "stretch"):
            scale = [ex.minimum(s, m) for s, m in zip(scale, limit, strict=True)]
        else:
            least: Any = scale[0]
            for m in limit:
                least = ex.minimum(least, m)
            scale = [least for _ in every]
    return scale
