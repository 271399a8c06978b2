# SPDX-License-Identifier: Apache-2.0
"""Minima, maxima and medians over rectangular windows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import IMAGES, Operator, RowContext
from ...contract.step import Launches, Value
from ...contract.types import DType
from ..geometry._axes import each_frame, image_axes
from ._tiles import separable_passes

_ELEMENTS = 1024  # of a block on a GPU (native/device/own_order.cuh)
_TILE_ROWS = 32  # of a GPU block's tile (native/device/own_extremes.cuh)
_MOST = 1 << 14  # pixels of a side of the enlarged window
# DALI's names of border modes in the order of the native numbers (native/shared/border.hpp).
_BORDERS = ("reflect_101", "reflect", "wrap", "replicate", "constant")
_NUMPY = {"reflect_101": "reflect", "reflect": "symmetric", "wrap": "wrap", "replicate": "edge"}
ORDERED = (
    DType.BOOL, DType.UINT8, DType.UINT16, DType.UINT32, DType.INT8, DType.INT16, DType.INT32, DType.FLOAT16,
    DType.BFLOAT16, DType.FLOAT,
)  # fmt: skip


def element_blocks(shape: Sequence[Scalar]) -> Scalar:
    """Return the number of GPU blocks for all elements of an image."""
    return (math.prod(shape) + _ELEMENTS - 1) // _ELEMENTS


def require_ordered(c: Lowering, x: Value) -> None:
    if x.dtype not in ORDERED:
        known = ", ".join(map(str, ORDERED))
        raise UnsupportedError(f"`{c.scope.operator.name}`: expected one of {known}, got {x.dtype}. Cast it first")


class Morphology(Operator):
    """Arguments and meaning of dilation and erosion."""

    default_layouts = IMAGES
    gives_bfloat16 = takes_bfloat16 = True
    largest = True
    mask_size = arg(
        "int", (3, 3), many=True, per_axis=True, per_row=True,
        doc="Size of the window in pixels, (width, height): at least 1, or -1 for 3.",
    )  # fmt: skip
    anchor = arg(
        "int", (-1, -1), many=True, per_axis=True, per_row=True,
        doc="Pixel of the window that lies on the output's position, (x, y); -1: the middle.",
    )  # fmt: skip
    iterations = arg(
        "int", 1,
        doc="Number of repetitions, at least 0. Each one after the first enlarges the window by its size less one.",
    )  # fmt: skip
    border_mode = arg(
        "str", "constant", choices=tuple(sorted(_BORDERS)),
        doc="Pixels beyond the edges of a row abcd. constant: none, they never win; replicate: aaa|abcd|ddd; reflect: "
        "cba|abcd|dcb; reflect_101: dcb|abcd|cba; wrap: bcd|abcd|abc.",
    )  # fmt: skip
    cases = (
        {},
        {"mask_size": (5, 2), "anchor": (4, 0), "border_mode": "reflect"},
        {"mask_size": (2, 7), "border_mode": "wrap"},
        {"mask_size": (3, 3), "iterations": 3, "border_mode": "reflect_101"},
        {"mask_size": (9, 1), "border_mode": "replicate"},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        require_ordered(c, x)
        axes = image_axes(c, x)
        repeated = c.const("iterations")
        c.expect(0 <= repeated <= _MOST, "expected 0 to {1} as `iterations`, got {0}", repeated, _MOST)
        border = c.const("border_mode")
        for name in ("mask_size", "anchor"):
            c.expect_one_or_each(name, 2)
        windows = [self._side(c, i, repeated) for i in (1, 0)]  # height, then width
        if border != "constant":
            for axis in axes[1:3]:
                c.require(x.shape[axis] >= 1, "expected an image with pixels")
        numbers = (*(size for size, _ in windows), *(before for _, before in windows))
        attrs = (*axes, _BORDERS.index(border), self.largest)
        (height, _), (width, _) = windows
        size = x.dtype.size
        tile, blocks = separable_passes(
            x.shape, axes, (height, width), _TILE_ROWS, (size, size), element_blocks(x.shape)
        )  # fmt: skip
        passes = {"tile": tile, "across": blocks, "down": blocks}
        scratch_bytes = ex.where(ex.equal(blocks, 0), 0, math.prod(x.shape) * size)
        return c.native(
            "extremes", [x], [(x.dtype, x.shape, x.layout)], attrs=attrs, params=(*numbers, *attrs),
            own=Launches("Extremes", passes, scratch_bytes),
        )[0]  # fmt: skip

    @staticmethod
    def _side(c: Lowering, i: int, repeated: int) -> tuple[Scalar, Scalar]:
        """Return the extent of the window and the pixels before its anchor, repetitions included."""
        size, anchor = c.scalar("mask_size", i), c.scalar("anchor", i)
        c.require(ex.either(size >= 1, ex.equal(size, -1)), "expected a `mask_size` of at least 1, got {0}", size)
        size = ex.where(size < 0, 3, size)
        c.require(
            ex.both(anchor >= -1, anchor < size), "expected an `anchor` inside of the window of {1} pixels, got {0}",
            anchor, size,
        )  # fmt: skip
        before = ex.where(anchor < 0, size // 2, anchor)
        wide = 1 + repeated * (size - 1)
        c.require(wide <= _MOST, "expected a window of at most {1} pixels with its repetitions, got {0}", wide, _MOST)
        return wide, before * repeated

    def reference(self, row: RowContext, x: Any) -> Any:
        sides = []
        for i in (1, 0):
            size, anchor = int(row.number("mask_size", i)), int(row.number("anchor", i))
            size = 3 if size < 0 else size
            sides.append(
                (1 + row["iterations"] * (size - 1), (size // 2 if anchor < 0 else anchor) * row["iterations"])
            )
        best = np.max if self.largest else np.min
        return windowed(x, row.layout, sides, row["border_mode"], lambda w: best(w, axis=-1), largest=self.largest)


def windowed(
    x: Any, layout: str, sides: Sequence[tuple[int, int]], border: str, best: Callable[[Any], Any], *, largest: bool
) -> Any:
    """Apply ``best`` to the last axis, which has the values of each position's window.

    Args:
        x: the image.
        layout: its axes.
        sides: extent and pixels before the position, of rows and of columns.
        border: DALI's name of the border mode.
        best: the function.
        largest: a constant border has the smallest values of the type.
    """
    dtype = x.dtype
    wide = x.astype(np.float32) if dtype.kind not in "biuf" or (dtype.itemsize == 2 and dtype.kind == "f") else x

    def one(frame: Any) -> Any:
        pads = [(before, size - 1 - before) for size, before in sides]
        if border == "constant":
            if dtype.kind in "iu":
                info = np.iinfo(dtype)
                worst: Any = info.min if largest else info.max
            else:
                worst = (not largest) if dtype.kind == "b" else -np.inf if largest else np.inf
            padded = np.pad(frame, [*pads, (0, 0)], constant_values=worst)
        else:
            padded = np.pad(frame, [*pads, (0, 0)], mode=_NUMPY[border])  # type: ignore[call-overload]
        seen = np.lib.stride_tricks.sliding_window_view(padded, [size for size, _ in sides], (0, 1))
        return best(seen.reshape(*seen.shape[:3], -1))

    return each_frame(wide, layout, one).astype(dtype)
