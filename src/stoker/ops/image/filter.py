# SPDX-License-Identifier: Apache-2.0
"""``filter``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Launches, Value
from ...contract.types import DType
from ..generic.cast import cast_array
from ..geometry._axes import each_frame, image_axes
from ..geometry._borders import BORDERS
from ._correlation import correlate_array
from ._tiles import window_passes

FILTERED = (DType.UINT8, DType.INT8, DType.UINT16, DType.INT16, DType.FLOAT16, DType.FLOAT)
_KNOWN = 25  # elements of a window that a GPU kernel is compiled for, at most: they fit into registers
_KNOWN_STEP = 4  # values per pixel that such a kernel has room for (native/device/own_filter.cuh)


def filtered_type(c: Lowering, x: Value) -> tuple[Value, DType]:
    """Return the image in a type that the kernels read (bfloat16 as float32), and the output's type."""
    own, asked = x.dtype, c.const("dtype")
    if own == DType.BFLOAT16:
        x = c.cast(x, DType.FLOAT)
    if x.dtype not in FILTERED:
        known = ", ".join(map(str, (*FILTERED, DType.BFLOAT16)))
        raise UnsupportedError(f"`{c.scope.operator.name}`: expected {known}, got {own}. Cast it first")
    dtype = own if asked is None else asked
    c.expect(dtype in (own, DType.FLOAT), f"expected {own} or float32 as `dtype`, got {dtype}")
    return x, dtype


def _filtered(
    c: Lowering, inputs: list[Value], output: Any, place: tuple[Any, Any, Any], numbers: list[Any], border: str,
    **framing: Any,
) -> Value:  # fmt: skip
    """Add the step. ``place``: extents of the image that the kernel sees, its axes, and the window's extents."""
    inner, axes, taps = place
    attrs = (*axes, tuple(BORDERS).index(border))
    constant = tuple(n for n in taps if isinstance(n, int))
    known = constant if len(constant) == 2 and 0 < math.prod(constant) <= _KNOWN else (0, 0)
    tile, blocks, rows = window_passes(inner, axes, (taps[0], taps[1]), _KNOWN_STEP if any(known) else 0)
    return c.native(
        "filter", inputs, [output], attrs=attrs, params=(*numbers, *attrs, rows),
        own=Launches("Filter", {"correlate": tile, "unstaged": blocks}, constants=known), **framing,
    )[0]  # fmt: skip


def filtered_by(c: Lowering, weights: Value, x: Value) -> Value:
    """Correlate images with one centered window of float32, into float32. Edges are reflected."""
    place = (x.shape, image_axes(c, x), weights.shape)
    starts = [n // 2 for n in weights.shape]
    return _filtered(c, [x, weights], (DType.FLOAT, x.shape, x.layout), place, [*starts, 0.0], "reflect_101")


class Filter(Operator, name="filter"):
    """Correlate images with a filter. Inputs: an image, a filter ``(rows, columns)`` of float32 (also one per frame),
    and a border's value.

    Images: HW, HWC, CHW or these with a leading F; 8 and 16 bits, float32. The value is for a constant border.

    Output: the same layout, in the image's type or float32. Channels and frames are independent. Sums are in float32,
    in the order of the filter's elements, with the same bits everywhere. DALI sums in another order, so results agree
    within float32 rounding.
    """

    gives_bfloat16 = takes_bfloat16 = True
    inputs = (2, 3)
    anchor = arg(
        "int", (-1,), many=True, per_axis=True, per_row=True,
        doc="Centre of the filter, (row, column); -1: its middle. Without effect if `mode` is valid.",
    )  # fmt: skip
    border = arg(
        "str", "reflect_101", choices=tuple(BORDERS), doc="Pixels beyond the edges of a row abcd. reflect_101: "
        "dcb|abcd|cba; reflect_1001: cba|abcd|dcb; clamp: aaa|abcd|ddd; wrap: bcd|abcd|abc; constant: the third input.",
    )  # fmt: skip
    mode = arg(
        "str", "same", choices=("same", "valid"),
        doc="same: the output is as large as the image; valid: only positions with the filter inside it.",
    )  # fmt: skip
    dtype = arg("dtype", None, doc="Element type of the output: float32, or the input's.")
    cases = (
        {},
        {"border": "clamp", "anchor": (0, 1)},
        {"border": "wrap", "anchor": (1,), "dtype": "float32"},
        {"border": "reflect_1001"},
        {"border": "constant"},
        {"mode": "valid"},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        rng = np.random.default_rng(5)
        windows = [rng.uniform(-0.4, 0.6, shape).astype(np.float32) for shape in ((3, 3), (4, 7), (5, 2))]
        fill = (np.array(77, np.uint8),) if case.get("border") == "constant" else ()
        return [(x, window, *fill) for (x,), window in zip(samples.images(), windows, strict=True)]

    def lower(self, c: Lowering, x: Value, weights: Value, fill: Value | None = None) -> Value:
        x, dtype = filtered_type(c, x)
        taps = weights.shape[1:] if weights.per_frame else weights.shape
        if len(taps) != 2:
            raise UnsupportedError(f"`filter`: expected one filter (rows, columns), got {len(taps)} axes")
        c.expect(weights.dtype == DType.FLOAT, f"expected a filter of float32, got {weights.dtype}")
        border, valid = c.const("border"), c.const("mode") == "valid"
        c.expect(fill is None or border == "constant", "expected a fill value only with `border` 'constant'")
        axes = image_axes(c, x)
        shape = list(x.shape)
        starts: list[Any] = []
        c.expect_one_or_each("anchor", 2)
        for i, axis in enumerate(axes[1:3]):
            size = taps[i]
            c.require(
                ex.both(size >= 1, x.shape[axis] >= 1), "expected a filter with elements and an image with pixels"
            )
            if valid:
                c.require(
                    x.shape[axis] >= size, "expected a filter inside of the image, got {0} > {1}", size, x.shape[axis]
                )
                shape[axis] = x.shape[axis] - size + 1
                starts.append(0)
                continue
            asked = c.scalar("anchor", i)
            c.require(ex.both(asked >= -1, asked < size), "expected an `anchor` inside of the filter, got {0}", asked)
            starts.append(ex.where(asked < 0, size // 2, asked))
        value = 0.0 if fill is None else c.element(fill)
        output = (x.dtype if dtype == DType.BFLOAT16 else dtype, shape, x.layout)
        frames = None
        inner = tuple(shape)
        if weights.per_frame or any(c.differs_by_frame(n) for n in (*starts, value)):
            # The kernel sees one frame after the other.
            c.expect(axes[0] == 0, "expected a video (a leading F axis) for arguments per frame")
            frames, inner = shape[0], inner[1:]
            axes = (-1, axes[1] - 1, axes[2] - 1, max(axes[3] - 1, -1))
            if weights.per_frame:
                text = "expected a filter for each of {1} frames, got {0}"
                c.require(ex.equal(weights.shape[0], frames), text, weights.shape[0], frames)
        framing = {} if frames is None else {"frames": frames, "framed": [True, weights.per_frame]}
        place = (inner, axes, taps)
        return c.cast(_filtered(c, [x, weights], output, place, [*starts, value], border, **framing), dtype)

    def reference(self, row: RowContext, x: Any, weights: Any, fill: Any = 0.0) -> Any:
        windows = itertools.cycle(weights if weights.ndim == 3 else [weights])  # per frame, or one for all
        weights = weights[0] if weights.ndim == 3 else weights
        starts = [int(row.number("anchor", i)) for i in (0, 1)]
        if row["mode"] == "same" and any(not -1 <= at < n for at, n in zip(starts, weights.shape, strict=True)):
            raise ValueError("the anchor is outside of the filter")
        starts = [n // 2 if at < 0 else at for at, n in zip(starts, weights.shape, strict=True)]
        dtype = DType.of(x.dtype) if row["dtype"] is None else row["dtype"]

        def filtered(frame: Any) -> Any:
            shape, begin = frame.shape[:2], starts
            if row["mode"] == "valid":
                if any(n < w for n, w in zip(shape, weights.shape, strict=False)):
                    raise ValueError("the filter is larger than the image")
                begin, shape = [0, 0], tuple(n - w + 1 for n, w in zip(shape, weights.shape, strict=True))
            value = float(np.asarray(fill).reshape(-1)[0])
            filtered = correlate_array(frame, next(windows), begin[0], begin[1], shape, row["border"], value)
            return cast_array(filtered, dtype)

        return each_frame(x, row.layout, filtered)
