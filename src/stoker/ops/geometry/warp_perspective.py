# SPDX-License-Identifier: Apache-2.0
"""``experimental.warp_perspective``."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import IMAGES, Operator, RowContext
from ...contract.step import Interpolator, Value
from ...contract.types import DType, InterpType
from ._axes import each_frame, image_axes
from ._map import mapped, mapped_reference, projected_maps, projected_maps_array
from ._warp import matrix_numbers, requested_size

_ELEMENTS = 9
_INTERPOLATORS = {
    InterpType.INTERP_NN: "project_nearest",
    InterpType.INTERP_LINEAR: "project_linear",
    InterpType.INTERP_CUBIC: "project_cubic",
}
_BORDERS = {"replicate": "clamp", "reflect": "reflect_1001", "reflect_101": "reflect_101", "wrap": "wrap"}
_MAX_CHANNELS = 4


class WarpPerspective(Operator, name="experimental.warp_perspective"):
    """Warp images by a perspective. Inputs: HW, HWC, CHW or these with a leading F, up to 32 bits an element; a matrix
    unless ``matrix`` is given.

    The 3x3 matrix maps a point (x, y, 1) of the output to one of the input, up to division by its third number. Without
    ``inverse_map`` the direction is reversed. Output: the same layout and type.

    uint8 with a constant border, up to four channels, equals Pillow's ``Image.transform(size, PERSPECTIVE, ...)``
    (NEAREST, BILINEAR, BICUBIC) bit for bit: values are truncated, and a pixel whose point is outside gets the fill
    value. All else is as in DALI: sampled at float32 coordinates, mixed with the fill value at the edge, rounded, and
    a cubic of coefficient -3/4.
    """

    default_layouts = IMAGES
    inputs = (1, 2)
    matrix = arg("float", None, many=True, per_row=True, doc="Nine numbers, rows first; per frame for videos, too.")
    inverse_map = arg("bool", True, doc="The matrix takes the output to the input; False: the input to the output.")
    pixel_origin = arg("str", "corner", choices=("corner", "center"), doc="Point of the first pixel that is at (0, 0).")
    border_mode = arg(
        "str", "constant", choices=("constant", *_BORDERS), doc="Pixels beyond the edges of a row abcd. constant: "
        "`fill_value`; replicate: aaa|abcd|ddd; reflect: cba|abcd|dcb; reflect_101: dcb|abcd|cba; wrap: bcd|abcd|abc.",
    )  # fmt: skip
    fill_value = arg("float", (0.0,), many=True, doc="Value outside of the image: one, or one per channel.")
    interp_type = arg(
        "interp",
        InterpType.INTERP_LINEAR,
        choices=tuple(_INTERPOLATORS),
        doc="INTERP_NN, INTERP_LINEAR or INTERP_CUBIC.",
    )
    size = arg(
        "float", None, many=True, per_axis=True, per_row=True, doc="Size of the output in pixels, (height, width)."
    )
    cases = (
        {"matrix": (0.9, 0.2, 1.5, -0.1, 1.1, -0.75, 0.002, 0.004, 1.0)},
        {"matrix": (0.9, 0.2, 1.5, -0.1, 1.1, -0.75, 0.002, 0.004, 1.2), "inverse_map": False, "fill_value": 9.0},
        {
            "matrix": (0.9, 0.2, 1.5, -0.1, 1.1, -0.75, 0.01, 0.0, 1.0), "pixel_origin": "center", "size": (9, 20),
            "interp_type": "INTERP_NN", "fill_value": (1.0, 2.0, 300.0),
        },
        {"matrix": (0.5, 0.1, 0.5, -0.1, 0.6, 1.0, 0.002, 0.004, 1.0), "interp_type": "INTERP_CUBIC"},
        {"matrix": (1.3, 0.2, -9.5, -0.1, 1.4, -7.0, 0.002, 0.004, 1.0), "border_mode": "reflect_101"},
        {
            "matrix": (1.3, 0.2, -9.5, -0.1, 1.4, -7.0, 0.002, 0.004, 1.0), "border_mode": "wrap", "size": (31, 40),
            "interp_type": "INTERP_CUBIC",
        },
    )  # fmt: skip

    def lower(self, c: Lowering, x: Value, matrix: Value | None = None) -> Value:
        height, width = c.extent(x, "H"), c.extent(x, "W")
        c.require(ex.both(height > 0, width > 0), "expected an image with pixels, got {0} x {1}", height, width)
        text = "expected at least one number as `fill_value`, got an empty list"
        c.expect(len(c.const("fill_value")) > 0, text)
        fills = _fills(c.const("fill_value"))
        m = matrix_numbers(c, matrix, _ELEMENTS)
        numbers = _normalised(c, m, c.const("inverse_map"), c.const("pixel_origin") == "center")
        if c.given("size"):
            height, width = requested_size(c)
        if _is_pillows(x.dtype, c.const("border_mode")):
            _check_channels(c, x)
            return c.sample(x, Interpolator(_INTERPOLATORS[c.const("interp_type")], (*numbers, *fills)), height, width)
        return self._mapped(c, x, numbers, height, width)

    @staticmethod
    def _mapped(c: Lowering, x: Value, numbers: list[Any], height: Any, width: Any) -> Value:
        """Compute the coordinates of all pixels, sample, and fill those outside."""
        kind, border = _kind(x.dtype, c.const("interp_type")), c.const("border_mode")
        axes = image_axes(c, x)
        maps = projected_maps(c, x, numbers, kind, height, width)
        fills = c.const("fill_value")

        def sampled(image: Value, fill: float) -> Value:
            return mapped(c, image, maps[0], maps[1], kind, fill=fill, border=_BORDERS.get(border, border))

        if len(fills) == 1 or border != "constant":
            return sampled(x, fills[0])
        c.expect(axes[3] >= 0, f"expected one `fill_value` for an image without channels, got {len(fills)}")
        text = "expected one `fill_value`, or one per channel, got {0} channels"
        c.require(ex.equal(x.shape[axes[3]], len(fills)), text, x.shape[axes[3]])
        parts = [sampled(c.slice(x, {axes[3]: (k, 1)}), fill) for k, fill in enumerate(fills)]
        joined: Value = c.apply("cat", *parts, axis=axes[3])
        return joined

    def reference(self, row: RowContext, x: Any, matrix: Any = None) -> Any:
        values = np.asarray(row["matrix"] if matrix is None else matrix, np.float64).reshape(-1, 3, 3)
        size = None if row["size"] is None else tuple(int(row.number("size", i) + 0.5) for i in (0, 1))
        sampling = tuple(_INTERPOLATORS).index(row["interp_type"])
        matrices = itertools.cycle(
            [_inverse_map(row, m) for m in values]
        )  # one matrix for all frames, or one per frame

        def shown(frame: Any) -> Any:
            if not _is_pillows(DType.of(x.dtype), row["border_mode"]):
                return _mapped_array(frame, next(matrices), size or frame.shape[:2], row)
            fills = np.array(_fills(row["fill_value"]), np.uint8)
            return _shown(frame, next(matrices), size or frame.shape[:2], sampling, fills[: frame.shape[2]])

        return each_frame(x, row.layout, shown)


def _is_pillows(dtype: DType, border: str) -> bool:
    return dtype == DType.UINT8 and border == "constant"


def _kind(dtype: DType, kind: InterpType) -> InterpType:
    """Return the interpolation: truth values are not mixed."""
    return InterpType.INTERP_NN if dtype == DType.BOOL else kind


def _check_channels(c: Lowering, x: Value) -> None:
    if "C" not in c.layout(x):
        return
    channels = c.extent(x, "C")
    text = "expected one `fill_value`, or one per channel of at most 4, got {0} channels"
    fits = channels <= _MAX_CHANNELS
    if len(c.const("fill_value")) > 1:
        fits = ex.equal(channels, len(c.const("fill_value")))
    c.require(fits, text, channels)


def _mapped_array(x: Any, m: Any, size: Any, row: RowContext) -> Any:
    """Warp one HWC image of any type."""
    kind, border = _kind(DType.of(x.dtype), row["interp_type"]), row["border_mode"]
    maps = projected_maps_array(m.reshape(-1), kind, *size)
    fills = row["fill_value"] if border == "constant" else row["fill_value"][:1]
    parts = np.split(x, len(fills), axis=2) if len(fills) > 1 else [x]
    out = [
        mapped_reference(part, "HWC", maps[0], maps[1], kind, fill=fill, border=_BORDERS.get(border, border))
        for part, fill in zip(parts, fills, strict=True)
    ]
    return np.concatenate(out, 2)


def _inverse_map(row: RowContext, m: Any) -> Any:
    """Return the matrix from output to input, pixel corners at the integers, scaled so that its last number is 1."""
    if not row["inverse_map"]:
        m = np.asarray(_adjugate(list(m.reshape(-1)))).reshape(3, 3)
    if row["pixel_origin"] == "center":
        there = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
        m = there @ m @ np.linalg.inv(there)
    return m / m[2, 2]


def _fills(values: Any) -> list[float]:
    """Return four bytes."""
    if not all(map(math.isfinite, values)):
        raise ArgumentError(f"`experimental.warp_perspective`: expected finite numbers as `fill_value`, got {values}")
    return [
        float(min(max(round(v), 0), 255)) for v in ((values * 4)[:4] if len(values) == 1 else (*values, 0, 0, 0)[:4])
    ]


def _normalised(c: Lowering, m: list[Any], inverse_map: bool, centers: bool) -> list[Any]:
    """Return eight numbers; the ninth is 1."""
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
    """Return the inverse of a 3x3 matrix up to a factor, which does not change a perspective."""
    a, b, c, d, e, f, g, h, i = m
    return [
        e * i - f * h, c * h - b * i, b * f - c * e, f * g - d * i, a * i - c * g, c * d - a * f, d * h - e * g,
        b * g - a * h, a * e - b * d,
    ]  # fmt: skip


def _shown(x: Any, m: Any, size: Any, sampling: int, fill: Any) -> Any:
    """Warp one HWC image."""
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
        lines.append(np.where(outside, lines[-1], line) if lines else line)  # as in Pillow, the line above is repeated
    return np.trunc(along(lines, dy)).clip(0, 255)
