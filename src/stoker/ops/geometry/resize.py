# SPDX-License-Identifier: Apache-2.0
"""``resize``, and the size and filter rules that other operators share."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.expr import is_static
from ...contract.lowering import Lowering
from ...contract.operator import IMAGES_AND_VOLUMES, RowContext
from ...contract.resizing import ResizeArguments
from ...contract.step import Interpolator, Value
from ...contract.types import DType, InterpType
from ..generic.cast import cast_array
from ._resample_reference import resize_array
from ._volume import along_depth, each_slice, restored, spatial_axes, unfolded, volume_array

RESAMPLED = (DType.UINT8, DType.UINT16, DType.INT16, DType.INT32, DType.FLOAT)


class Size:
    """Output extents and source region of one resize, per axis (y, x) or (z, y, x): numbers or expressions."""

    def __init__(self, out: list[Any], low: list[Any], high: list[Any]) -> None:
        self.out, self.low, self.high = out, low, high


class _Numbers:
    """Arguments as scalars, for both the symbolic and the plain form."""

    def __init__(self, given: Any, scalar: Any, const: Any) -> None:
        self.given, self.scalar, self.const = given, scalar, const


def output_size(a: Any, extents: Sequence[Any], require: Any, may_be_empty: bool = False) -> Size:
    """Apply DALI's size rules: half away from zero, at least 1; 0 means "not given", negative mirrors.

    ``extents`` are those of the image, (y, x), or of the volume, (z, y, x). If the image ``may_be_empty``, an axis
    without pixels stays so, and its requested size says nothing about the other axes; else such an image is refused.
    """
    low, high = [0 for _ in extents], list(extents)
    if a.given("roi_start") or a.given("roi_end"):
        require(a.given("roi_start") and a.given("roi_end"), "expected `roi_start` and `roi_end` together")
        for i, n in enumerate(extents):
            factor = n if a.const("roi_relative") else 1
            low[i], high[i] = a.scalar("roi_start", i) * factor, a.scalar("roi_end", i) * factor
            require(
                ex.isfinite(low[i]) & ex.isfinite(high[i]), "expected a finite region, got {0} to {1}", low[i], high[i]
            )
            low[i], high[i] = ex.clamp(low[i], 0, n), ex.clamp(high[i], 0, n)
    wanted = _requested(a, len(extents), require)
    source = [ex.absolute(h - lo) for lo, h in zip(low, high, strict=True)]
    empty = [ex.equal(n, 0) if may_be_empty else False for n in extents]
    for n, is_empty in zip(source, empty, strict=True):
        text = "expected a region (or image) with at least one pixel, got an extent of {0}"
        require(ex.either(is_empty, n > 0) if may_be_empty else n > 0, text, n)
    exact = _scaled(a, wanted, source) if not may_be_empty else _scaled_if_any(a, wanted, source, empty)
    out = []
    for i, e in enumerate(exact):
        require(ex.isfinite(e), "expected a finite size, got {0}", e)
        magnitude = ex.maximum(ex.round_away(ex.absolute(e)), 1)
        magnitude = ex.where(empty[i], 0, magnitude) if may_be_empty else magnitude
        require(magnitude <= 1 << 24, "expected a size of at most 2**24, got {0}", magnitude)
        if a.const("subpixel_scale"):
            # The region grows or shrinks about its centre by the effect of rounding on the size.
            stretch = magnitude / ex.maximum(ex.absolute(e), 1e-9)
            middle, half = (low[i] + high[i]) / 2, (high[i] - low[i]) / 2 * stretch
            low[i], high[i] = middle - half, middle + half
        low[i], high[i] = ex.where(e < 0, high[i], low[i]), ex.where(e < 0, low[i], high[i])
        out.append(magnitude)
    return Size(out, low, high)


def _requested(a: Any, axes: int, require: Any) -> list[Any]:
    """Return the requested sizes, (y, x) or (z, y, x); 0 where not given."""
    kinds = [k for k in ("size", "resize_shorter", "resize_longer") if a.given(k)]
    names = ("resize_z", "resize_y", "resize_x")[-axes:]
    single = any(a.given(name) for name in names)
    require(
        len(kinds) + bool(single) == 1,
        "expected one of `size`, `resize_x`/`resize_y`, `resize_shorter`, `resize_longer`",
    )
    if kinds == ["size"]:
        return [a.scalar("size", i) for i in range(axes)]
    if kinds:
        return [a.scalar(kinds[0])] * axes
    return [a.scalar(k) if a.given(k) else 0 for k in names]


def _scaled(a: Any, wanted: list[Any], source: list[Any]) -> list[Any]:
    """Return the size before rounding."""
    mode = a.const("mode")
    if a.given("resize_shorter"):
        mode = "not_smaller"
    elif a.given("resize_longer"):
        mode = "not_larger"
    ratio = [ex.absolute(w) / s for w, s in zip(wanted, source, strict=True)]
    sign = [ex.where(w < 0, -1, 1) for w in wanted]
    missing = [ex.equal(w, 0) for w in wanted]
    if mode == "stretch":
        scale = [ex.where(m, 1, r) for m, r in zip(missing, ratio, strict=True)]
    elif mode == "default":
        scale = _completed(ratio, missing)
    else:
        pick = ex.minimum if mode == "not_larger" else ex.maximum
        one = ratio[0]
        for i in range(1, len(ratio)):
            some = functools.reduce(ex.both, missing[:i])
            one = ex.where(some, ratio[i], ex.where(missing[i], one, pick(one, ratio[i])))
        scale = [one for _ in ratio]
    if a.const("max_size") is not None:
        limits = a.const("max_size")
        limit = [limits[i if len(limits) > 1 else 0] / n for i, n in enumerate(source)]
        if mode in ("stretch", "default"):
            scale = [ex.minimum(s, m) for s, m in zip(scale, limit, strict=True)]
        else:
            shrink = ex.minimum(scale[0], functools.reduce(ex.minimum, limit))
            scale = [shrink for _ in scale]
    # A requested extent is exact, whatever scale * source rounds to.
    exact = []
    for i in range(len(scale)):
        unchanged = ex.same(scale[i], ratio[i]) or ex.equal(scale[i], ratio[i])
        exact.append(sign[i] * ex.where(unchanged, ex.absolute(wanted[i]), scale[i] * source[i]))
    return exact


def _scaled_if_any(a: Any, wanted: list[Any], source: list[Any], empty: list[Any]) -> list[Any]:
    """Return the size before rounding of images that may have ``empty`` axes, whose own size has no meaning."""
    if not all(map(is_static, source)):
        exact = _scaled(a, wanted, source)
        if all(map(is_static, exact)):  # every size is given, and no axis has a part in that of another one
            return exact
    source = [ex.where(is_empty, 1, n) for n, is_empty in zip(source, empty, strict=True)]
    wanted = [ex.where(is_empty, 0, w) for w, is_empty in zip(wanted, empty, strict=True)]
    return _scaled(a, wanted, source)


def _completed(ratio: list[Any], missing: list[Any]) -> list[Any]:
    """Return the scales; those that are missing are the geometric mean of the given ones, or 1 if none is given."""
    if len(ratio) == 2:
        return [ex.where(missing[i], ex.where(missing[1 - i], 1, ratio[1 - i]), ratio[i]) for i in (0, 1)]
    scale = []
    for i, r in enumerate(ratio):
        j, k = (n for n in range(3) if n != i)
        both = ex.sqrt(ratio[j] * ratio[k])
        others = ex.where(missing[j], ex.where(missing[k], 1, ratio[k]), ex.where(missing[k], ratio[j], both))
        scale.append(ex.where(missing[i], others, r))
    return scale


def filters(a: Any, size: Size, require: Any) -> list[Any]:
    """Return the filter's number per axis: ``min_filter`` where the axis shrinks, else ``mag_filter``."""
    down, up = (a.scalar(name if a.given(name) else "interp_type") for name in ("min_filter", "mag_filter"))
    for kind in (down, up):
        known = ex.both((kind >= 0) & (kind <= max(InterpType)), ex.equal(ex.floor(kind), kind))
        require(known, "expected one of the INTERP_* numbers, got {0}", kind)
    return [ex.where(o < ex.absolute(h - lo), down, up) for o, lo, h in zip(size.out, size.low, size.high, strict=True)]


def check_arguments(c: Lowering, axes: str) -> None:
    """Refuse argument lengths and axes that do not fit the image or volume."""
    name = c.scope.operator.name
    if "D" not in axes and c.given("resize_z"):
        depth = c.scalar("resize_z")
        c.require(ex.equal(depth, 0), "expected a volume (an axis D) for a `resize_z`, got an image and {0}", depth)
    for argument in ("size", "roi_start", "roi_end", "max_size"):
        if c.given(argument) and c.length(argument) not in (None, 1, len(axes)):
            raise ArgumentError(
                f"`{name}`: expected `{argument}` with 1 or {len(axes)} elements, got {c.length(argument)}"
            )


def sampled_type(own: DType, dtype: DType, nearest: bool) -> DType:
    """Return the type that the resampling computes with. float32, unless the type has a kernel that loses nothing.

    Every value is rounded once, to the output's type. Nearest pixels are not rounded at all.
    """
    if own not in RESAMPLED:
        return DType.FLOAT
    wide = own == DType.INT32 and not dtype.is_float  # computed in double, and rounded to the widest type
    return own if nearest or wide or dtype == own else DType.FLOAT


def resample(c: Lowering, x: Value, size: Size, dtype: DType | None = None) -> Value:
    """Emit the resampling of ``x`` to ``size``, as elements of ``dtype`` (None: its own)."""
    kinds = filters(c, size, c.require)
    nearest = all(is_static(kind) and kind == InterpType.INTERP_NN for kind in kinds)
    dtype = x.dtype if dtype is None else dtype
    if len(kinds) == 3:
        return c.cast(_resample_volume(c, x, size, kinds, nearest), dtype)
    x = c.cast(x, sampled_type(x.dtype, dtype, nearest))
    interpolator = _interpolator(c, size, kinds, 0, 1)
    return c.cast(c.sample(x, interpolator, size.out[0], size.out[1]), dtype)


def _interpolator(c: Lowering, size: Size, kinds: list[Any], y: int, x: int) -> Interpolator:
    """Return the interpolator of two axes."""
    region = (size.low[y], size.high[y], size.low[x], size.high[x])
    return Interpolator("resample", (*region, kinds[y], kinds[x], c.const("antialias")))


def _resample_volume(c: Lowering, x: Value, size: Size, kinds: list[Any], nearest: bool) -> Value:
    """Resample the slices, then the columns along the depth. Values between the passes are not rounded to integers."""
    layout = c.layout(x)
    # float32 moves all but large integers unchanged.
    carrier = x.dtype if nearest and x.dtype in RESAMPLED else DType.FLOAT
    x = c.cast(unfolded(c, x), carrier)
    flat = _interpolator(c, size, kinds, 1, 2)
    x = each_slice(c, x, lambda image: c.sample(image, flat, size.out[1], size.out[2]))

    def deep(image: Value) -> Value:
        pixels = c.extent(image, "W")
        region = (size.low[0], size.high[0], 0, pixels, kinds[0], InterpType.INTERP_NN, c.const("antialias"))
        return c.sample(image, Interpolator("resample", region), size.out[0], pixels)

    return restored(c, along_depth(c, x, deep), layout)


def _resize_volume_array(x: Any, size: Size, kinds: list[int], antialias: bool) -> Any:
    """Resample a volume DHWC in NumPy."""
    x = resize_array(x, "DHWC", size.out[1:], size.low[1:], size.high[1:], kinds[1:], antialias)
    height = x.shape[1]
    out, low, high = (size.out[0], height), (size.low[0], 0), (size.high[0], height)
    return resize_array(x, "HWxy", out, low, high, (kinds[0], InterpType.INTERP_NN), antialias)


def sampling_reference(row: RowContext, *extents: int, may_be_empty: bool = False) -> tuple[Size, list[int]]:
    """Return the results of :func:`output_size` and :func:`filters` for one row, in numbers."""

    def require(condition: Any, text: str, *values: Any) -> None:
        if not condition:
            raise ValueError(text.format(*values))

    numbers = _Numbers(lambda n: row[n] is not None, lambda n, i=0: row.number(n, i), lambda n: row[n])
    size = output_size(numbers, extents, require, may_be_empty)
    return size, [int(f) for f in filters(numbers, size, require)]


class Resize(ResizeArguments, name="resize"):
    """Resize images and volumes. Input: HWC, CHW, HW or these with a leading F, or an axis D before H; any type.
    Output: the same layout and type.

    Exact: uint8 equals Pillow's ``Image.resize`` bit for bit, for every filter, with ``roi_*`` as its ``box=`` (the
    filter may read around the region); channels are independent. Values that become another type (``dtype``) are
    computed in float32 and rounded once. INTERP_LINEAR is Pillow's BILINEAR, INTERP_CUBIC its
    BICUBIC, INTERP_LANCZOS3 its LANCZOS.
    """

    default_layouts = IMAGES_AND_VOLUMES
    version = 2  # version 1 rounded to the image's type before `dtype`
    dtype = arg("dtype", None, doc="Element type of the output; by default the input's.")
    image_type = arg("image_type", None, doc="Accepted; has no effect.")
    save_attrs = arg("bool", False, doc="Also output the input's shape, int32.")
    allow_empty = arg(
        "bool", False,
        doc="Whether images without pixels are accepted: an axis without pixels stays so, and the output's shape "
        "depends on the data. No effect on volumes, and where the number of channels is known before the run (images "
        "of decoders, layout HW): an image without pixels is an error of its row there.",
    )  # fmt: skip
    cases = (
        {"size": (7, 9)},
        {"resize_x": 12, "interp_type": "INTERP_CUBIC"},
        {"resize_shorter": 6, "interp_type": "INTERP_LANCZOS3"},
        {"resize_longer": 30, "interp_type": "INTERP_NN"},
        {"size": (8, 8), "roi_start": (1.5, 2.0), "roi_end": (9.0, 11.25), "interp_type": "INTERP_BOX"},
        {"size": (20, 5), "mode": "not_larger", "interp_type": "INTERP_HAMMING"},
        {"size": (8, 6), "dtype": "float32", "antialias": False},
        {"size": (8, 6), "allow_empty": True},
    )

    def count_outputs(self, args: Any) -> int:
        return 2 if args["save_attrs"] else 1

    def lower(self, c: Lowering, x: Value) -> Any:
        axes = spatial_axes(c, x)
        check_arguments(c, axes)
        extents = [c.extent(x, name) for name in axes]
        size = output_size(c, extents, c.require, self._may_be_empty(c, x, axes))
        out = resample(c, x, size, c.const("dtype"))
        if not c.const("save_attrs"):
            return out
        return out, c.numbers(extents, DType.INT32)

    @classmethod
    def takes_empty_rows(cls, arguments: Mapping[str, Any]) -> bool:
        allows = arguments.get("allow_empty")
        return isinstance(allows, int | np.bool_ | np.integer) and bool(allows)  # other values are refused later

    @staticmethod
    def _may_be_empty(c: Lowering, x: Value, axes: str) -> bool:
        """Return whether images without pixels are accepted: on request, and if the output has no fixed shape anyway.

        The rows of a batch with a fixed shape are one array in memory that is planned ahead. An image without pixels
        would need another shape there.
        """
        others = [n for name, n in zip(c.layout(x), x.shape, strict=True) if name not in axes]
        return c.const("allow_empty") and "D" not in axes and not all(map(is_static, others))

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        extents = [x.shape[layout.index(name)] for name in "DHW" if name in layout]
        size, kinds = sampling_reference(row, *extents, may_be_empty=row["allow_empty"] and len(extents) == 2)
        dtype = DType.of(x.dtype) if row["dtype"] is None else row["dtype"]
        nearest = set(kinds) == {InterpType.INTERP_NN}
        if len(extents) == 3:
            x = x if nearest and DType.of(x.dtype) in RESAMPLED else cast_array(x, DType.FLOAT)
            out = volume_array(x, layout, lambda v: _resize_volume_array(v, size, kinds, row["antialias"]))
        else:
            x = cast_array(x, sampled_type(DType.of(x.dtype), dtype, nearest))
            out = resize_array(x, layout, size.out, size.low, size.high, kinds, row["antialias"])
        out = cast_array(out, dtype)
        return (out, np.asarray(extents, np.int32)) if row["save_attrs"] else out
