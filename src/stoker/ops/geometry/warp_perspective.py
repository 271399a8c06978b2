# SPDX-License-Identifier: Apache-2.0
"""``experimental.warp_perspective``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.errors import ArgumentError, UnsupportedError
from ...contract.expr import Expr, Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, arg
from ...contract.step import Launches, Value
from ...contract.types import DType, InterpType
from ..image._axes import each_frame, image_axes
from ._warp import asked_size

_ELEMENTS = 9
_SAMPLING = {InterpType.INTERP_NN: 0, InterpType.INTERP_LINEAR: 1, InterpType.INTERP_CUBIC: 2}  # warp_project.hpp
_MOST_CHANNELS = 4
_PIXELS = 1024  # of a block on a GPU (native/cuda/own_perspective.cuh)


class WarpPerspective(Operator, name="experimental.warp_perspective"):
    """Show images in perspective. Inputs: uint8, HW, HWC, CHW or these with a leading F; a matrix, if not ``matrix``.

    The 3x3 matrix takes a point (x, y, 1) of the output to one of the input, times its third number; the other way
    round without ``inverse_map``. Output: the same layout, up to four channels. Equals Pillow's
    ``Image.transform(size, PERSPECTIVE, ...)`` (NEAREST, BILINEAR, BICUBIC) bit for bit: interpolated values are
    truncated, where DALI rounds them, and a pixel whose point is outside is filled, where DALI mixes it with the edge.
    """

    kind = "gather"
    inputs = (1, 2)
    matrix = arg("float", None, many=True, per_row=True, doc="Nine numbers, rows first.")
    inverse_map = arg("bool", True, doc="The matrix takes the output to the input; False: the input to the output.")
    pixel_origin = arg("str", "corner", choices=("corner", "center"), doc="What of the first pixel is at (0, 0).")
    border_mode = arg("str", "constant", choices=("constant",), doc="What is outside of the image: `fill_value`.")
    fill_value = arg("float", (0.0,), many=True, doc="Value outside of the image: one, or one per channel.")
    interp_type = arg(
        "interp", InterpType.INTERP_LINEAR, choices=tuple(_SAMPLING), doc="INTERP_NN, INTERP_LINEAR or INTERP_CUBIC."
    )
    size = arg("float", None, many=True, per_row=True, doc="Size of the output, (height, width).")
    cases = (
        {"matrix": (0.9, 0.2, 1.5, -0.1, 1.1, -0.75, 0.002, 0.004, 1.0)},
        {"matrix": (0.9, 0.2, 1.5, -0.1, 1.1, -0.75, 0.002, 0.004, 1.2), "inverse_map": False, "fill_value": 9.0},
        {
            "matrix": (0.9, 0.2, 1.5, -0.1, 1.1, -0.75, 0.01, 0.0, 1.0), "pixel_origin": "center", "size": (9, 20),
            "interp_type": "INTERP_NN", "fill_value": (1.0, 2.0, 300.0),
        },
        {"matrix": (0.5, 0.1, 0.5, -0.1, 0.6, 1.0, 0.002, 0.004, 1.0), "interp_type": "INTERP_CUBIC"},
    )  # fmt: skip

    def lower(self, c: Lowering, x: Value, matrix: Value | None = None) -> Value:
        if x.dtype != DType.UINT8:
            raise UnsupportedError(f"`{self.name}`: expected uint8, got {x.dtype}. Cast it first")
        axes = image_axes(c, x)
        height, width = x.shape[axes[1]], x.shape[axes[2]]
        c.require(ex.both(height > 0, width > 0), "expected an image with pixels, got {0} x {1}", height, width)
        fills = _fills(c.const("fill_value"))
        if axes[3] >= 0:
            channels = x.shape[axes[3]]
            text = "expected one `fill_value`, or one per channel of at most 4, got {0} channels"
            fits = channels <= _MOST_CHANNELS
            if len(c.const("fill_value")) > 1:
                fits = ex.equal(channels, len(c.const("fill_value")))
            c.require(fits, text, channels)
        numbers = _normalised(c, self._numbers(c, matrix), c.const("inverse_map"), c.const("pixel_origin") == "center")
        shape = list(x.shape)
        shape[axes[1]], shape[axes[2]] = asked_size(c) if c.given("size") else (height, width)
        attrs = (*axes, _SAMPLING[c.const("interp_type")])
        blocks = (shape[axes[1]] * shape[axes[2]] + _PIXELS - 1) // _PIXELS
        if axes[0] >= 0:
            blocks = blocks * shape[axes[0]]
        return c.native(
            "perspective", [x], [(x.dtype, shape, x.layout)], attrs=attrs, params=(*numbers, *fills, *axes),
            own=Launches("Perspective", {"show": blocks}, constants=attrs[-1:]),
        )[0]  # fmt: skip

    def _numbers(self, c: Lowering, matrix: Value | None) -> list[Scalar]:
        if (matrix is None) == (not c.given("matrix")):
            raise ArgumentError(f"`{self.name}`: expected a matrix, as second input or as `matrix`")
        edge = c.scope.edges.get("matrix") if matrix is None else matrix
        if edge is None:
            count = c.length("matrix") or 0
            c.expect(count == _ELEMENTS, "expected nine numbers as `matrix`, got {0}", count)
            return [c.scalar("matrix", i) for i in range(_ELEMENTS)]
        if edge.per_frame:
            raise UnsupportedError(f"`{self.name}`: expected one matrix for all frames, got one per frame")
        known = c.count(edge)
        number = Expr("count", edge.id) if known is None else known
        c.require(ex.equal(number, _ELEMENTS), "expected a matrix of nine numbers, got {0}", number)
        return [c.element(edge, i) for i in range(_ELEMENTS)]

    def reference(self, row: RowContext, x: Any, matrix: Any = None) -> Any:
        m = np.asarray(row["matrix"] if matrix is None else matrix, np.float64).reshape(3, 3)
        if not row["inverse_map"]:
            m = np.asarray(_adjugate(list(m.reshape(-1)))).reshape(3, 3)
        if row["pixel_origin"] == "center":
            there = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
            m = there @ m @ np.linalg.inv(there)
        m = m / m[2, 2]
        size = None if row["size"] is None else tuple(int(row.number("size", i) + 0.5) for i in (0, 1))
        fills = np.array(_fills(row["fill_value"]), np.uint8)

        def shown(frame: Any) -> Any:
            return _shown(frame, m, size or frame.shape[:2], _SAMPLING[row["interp_type"]], fills[: frame.shape[2]])

        return each_frame(x, row.layout, shown)


def _fills(values: Any) -> list[float]:
    """Four bytes."""
    return [
        float(min(max(round(v), 0), 255)) for v in ((values * 4)[:4] if len(values) == 1 else (*values, 0, 0, 0)[:4])
    ]


def _normalised(c: Lowering, m: list[Any], inverse_map: bool, centers: bool) -> list[Any]:
    """Eight numbers; the ninth is 1."""
    for number in m:
        c.require(ex.isfinite(number), "expected a finite matrix, got {0}", number)
    if not inverse_map:
        m = _adjugate(m)
        det = ex.absolute(m[8]) + ex.absolute(m[0]) + ex.absolute(m[4])
        c.require(det > 0, "expected a matrix that can be inverted")
    if centers:  # half a pixel to the centre, and back
        for row in (0, 3, 6):
            m[row + 2] = m[row + 2] - 0.5 * (m[row] + m[row + 1])
        for column in range(3):
            m[column] = m[column] + 0.5 * m[6 + column]
            m[3 + column] = m[3 + column] + 0.5 * m[6 + column]
    c.require(ex.absolute(m[8]) > 0, "expected a matrix whose last number is not zero")
    numbers = [number / m[8] for number in m[:8]]
    for number in numbers:
        c.require(
            ex.isfinite(number), "expected a matrix that is finite when divided by its last number, got {0}", number
        )
    return numbers


def _adjugate(m: list[Any]) -> list[Any]:
    """The inverse of a 3x3 matrix but for a factor, which a perspective does not see."""
    a, b, c, d, e, f, g, h, i = m
    return [
        e * i - f * h, c * h - b * i, b * f - c * e, f * g - d * i, a * i - c * g, c * d - a * f, d * h - e * g,
        b * g - a * h, a * e - b * d,
    ]  # fmt: skip


def _shown(x: Any, m: Any, size: Any, sampling: int, fill: Any) -> Any:
    """One HWC image."""
    across, down = np.arange(size[1]) + 0.5, (np.arange(size[0]) + 0.5)[:, None]
    with np.errstate(all="ignore"):
        below = m[2, 0] * across + m[2, 1] * down + 1
        columns, rows = ((m[k, 0] * across + m[k, 1] * down + m[k, 2]) / below for k in (0, 1))
        inside = (columns >= 0) & (columns < x.shape[1]) & (rows >= 0) & (rows < x.shape[0])
    columns, rows = np.where(inside, columns, 0), np.where(inside, rows, 0)
    if sampling == 0:
        values = x[rows.astype(int), columns.astype(int)]
    else:
        values = _interpolated(x.astype(np.float64), columns - 0.5, rows - 0.5, cubic=sampling == 2)
    return np.where(inside[..., None], values, fill).astype(np.uint8)


def _interpolated(x: Any, columns: Any, rows: Any, cubic: bool) -> Any:
    left, top = np.floor(columns).astype(int), np.floor(rows).astype(int)
    dx, dy = (columns - left)[..., None], (rows - top)[..., None]
    taps = range(-1, 3) if cubic else range(2)

    def along(values: list[Any], d: Any) -> Any:
        if not cubic:
            return values[0] + (values[1] - values[0]) * d
        a, b, c, e = values
        return b + d * ((-a + c) + d * ((2 * (a - b) + c - e) + d * (-a + b - c + e)))

    lines: list[Any] = []
    for k in taps:
        row = (top + k).clip(0, x.shape[0] - 1)
        line = along([x[row, (left + j).clip(0, x.shape[1] - 1)] for j in taps], dx)
        outside = ((top + k < 0) | (top + k >= x.shape[0]))[..., None]
        lines.append(np.where(outside, lines[-1], line) if lines else line)  # Pillow's: as the line above
    return np.trunc(along(lines, dy)).clip(0, 255)
