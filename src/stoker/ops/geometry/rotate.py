# SPDX-License-Identifier: Apache-2.0
"""``rotate``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.pixel import uniform
from ...contract.step import Value
from ...contract.types import DType
from ._warp import WarpArguments, carrier_type, requested_size, requested_volume, require_sampled, warp, warp_array
from ._warp_volume import about_centre, rotated_size, rotation_of, volume_extents, warp_volume, warp_volume_array


class Rotate(WarpArguments, name="rotate"):
    """Rotate images, and volumes about an axis. Input: HWC, CHW, HW or these with a leading F, or an axis D before H.
    Output: the same layout.

    The canvas is DALI's: large enough for the whole image, with the image's parity, or determined by ``keep_size`` and
    ``size``. Multiples of 90 degrees are exact. uint8 on Pillow's canvas with a fill value equals Pillow's
    ``Image.rotate`` (NEAREST, BILINEAR) bit for bit. INTERP_CUBIC is that of `warp_affine`.
    """

    version = 2  # version 1 rounded to the image's type before `dtype`
    angle = arg(
        "float",
        per_row=True,
        doc="Angle in degrees, counter-clockwise. Per frame for videos, too: the canvas is the largest frame's.",
    )
    axis = arg(
        "float", None, many=True, per_row=True,
        doc="Axis (x, y, z) about which a volume is rotated, of any length. Per frame, too.",
    )  # fmt: skip
    keep_size = arg("bool", False, doc="Keep the image's size.")
    cases = (
        {"angle": 30.0},
        {"angle": -117.5, "fill_value": 9.0, "interp_type": "INTERP_NN"},
        {"angle": 90.0, "fill_value": 0.0},
        {"angle": 45.0, "keep_size": True, "fill_value": 200.0},
        {"angle": 10.0, "size": (9, 20), "dtype": "float32"},
        {"angle": 30.0, "interp_type": "INTERP_CUBIC"},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        carrier_type(c, x)
        if "D" in c.layout(x):
            return self._volume(c, x)
        if c.given("axis"):
            raise ArgumentError("`rotate`: `axis` is for volumes, whose layout has a D; images need just `angle`")
        height, width, angle = c.extent(x, "H"), c.extent(x, "W"), c.scalar("angle")
        c.require(ex.isfinite(angle), "expected a finite `angle`, got {0}", angle)
        require_sampled(c, height, width)
        cos, sin = turn(angle)
        out_height, out_width = self._canvas(c, x, cos, sin)
        return warp(c, x, matrix(cos, sin, height, width, out_height, out_width), out_height, out_width)

    def _canvas(self, c: Lowering, x: Value, cos: Scalar, sin: Scalar) -> tuple[Scalar, Scalar]:
        height, width = c.extent(x, "H"), c.extent(x, "W")
        if c.given("size"):
            if c.const("keep_size"):
                raise ArgumentError("`rotate`: expected `size` or `keep_size`, got both")
            return requested_size(c)
        if c.const("keep_size"):
            return height, width
        height, width = _largest(c, x, canvas(cos, sin, height, width))
        return height, width

    @staticmethod
    def _volume(c: Lowering, x: Value) -> Value:
        if not c.given("axis"):
            raise ArgumentError("`rotate`: expected an `axis` (x, y, z) for a volume")
        extents, angle = volume_extents(c, x), c.scalar("angle")
        c.require(ex.isfinite(angle), "expected a finite `angle`, got {0}", angle)
        count = c.fixed_length("axis")
        c.expect(count == 3, f"expected an `axis` of three numbers (x, y, z), got {count}")
        axis = [c.scalar("axis", i) for i in range(3)]
        length = ex.sqrt(axis[0] * axis[0] + axis[1] * axis[1] + axis[2] * axis[2])
        c.require(ex.both(length > 0, ex.isfinite(length)), "expected an `axis` of some length, got {0}", length)
        rotation = rotation_of([a / length for a in axis], *turn(angle))
        size: Any = extents
        if c.given("size"):
            if c.const("keep_size"):
                raise ArgumentError("`rotate`: expected `size` or `keep_size`, got both")
            size = requested_volume(c)
        elif not c.const("keep_size"):
            size = _largest(c, x, rotated_size(rotation, extents))
        return warp_volume(c, x, about_centre(rotation, extents, size), size)

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        angles = [float(a) for a in np.asarray(row["angle"], np.float64).reshape(-1)]
        radians = [math.radians(a % 360) for a in angles]
        turns = [(round(math.cos(t), 15), round(math.sin(t), 15)) for t in radians]
        if "D" in layout:
            return self._rotated_volume(row, x, layout, turns)
        at = layout.find("F")
        frames = np.moveaxis(x, at, 0) if at >= 0 else x[None]
        height, width = (x.shape[layout.index(name)] for name in "HW")
        size = _size(row, (height, width), [_canvas_of(cos, sin, height, width) for cos, sin in turns])
        out = []
        for i, frame in enumerate(frames):
            cos, sin = turns[i if len(turns) > 1 else 0]
            m = matrix(cos, sin, height, width, size[0], size[1])
            out.append(warp_array(row, frame, layout.replace("F", ""), m, size[0], size[1]))
        return np.stack(out, at) if at >= 0 else out[0]

    @staticmethod
    def _rotated_volume(row: RowContext, x: Any, layout: str, turns: list[Any]) -> Any:
        extents = tuple(x.shape[layout.index(name)] for name in "DHW")
        axes = np.asarray(row["axis"], np.float64).reshape(-1, 3)
        axes = axes / np.sqrt((axes**2).sum(1, keepdims=True))
        rotations = [
            rotation_of(axes[i if len(axes) > 1 else 0], *turns[i if len(turns) > 1 else 0])
            for i in range(max(len(axes), len(turns)))
        ]
        size = _size(row, extents, [tuple(map(int, rotated_size(r, extents))) for r in rotations])
        return warp_volume_array(row, x, layout, [about_centre(r, extents, size) for r in rotations], size)


def _size(row: RowContext, extents: tuple[int, ...], canvases: list[Any]) -> tuple[int, ...]:
    """Return the size of the output in plain numbers: the given one, the input's, or the largest canvas."""
    if row["size"] is not None:
        return tuple(int(row.number("size", i) + 0.5) for i in range(len(extents)))
    return extents if row["keep_size"] else tuple(map(max, zip(*canvases, strict=True)))


def _canvas_of(cos: float, sin: float, height: int, width: int) -> tuple[int, int]:
    """Return :func:`canvas` in plain numbers."""
    sides = (height, width) if abs(sin) <= abs(cos) else (width, height)
    down = math.ceil(abs(cos) * height + abs(sin) * width - 1e-2)
    across = math.ceil(abs(cos) * width + abs(sin) * height - 1e-2)
    return down + (down - sides[0]) % 2, across + (across - sides[1]) % 2


def _largest(c: Lowering, x: Value, sides: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the largest extents over all frames, if the extents differ by frame."""
    if not any(c.differs_by_frame(n) for n in sides):
        return sides
    at = c.layout(x).find("F")
    c.expect(at >= 0, "expected a video (an axis F) for arguments per frame")
    frames = x.shape[at]
    program = [uniform(n, DType.FLOAT64) for n in sides]
    spread = c.stage(
        [], [(DType.FLOAT64, (frames, 1, len(sides)), "")], [program], channels=len(sides), frames=frames
    )[0]  # fmt: skip
    largest = c.apply("reductions.max", spread, axes=(0, 1))
    return tuple(c.element(largest, i) for i in range(len(sides)))


def turn(angle: Scalar) -> tuple[Any, Any]:
    """Return cosine and sine, rounded to 15 digits as in Pillow, so that 60 degrees give one half and 90 are exact."""
    turned = angle % 360
    theta = turned * (math.pi / 180)
    at = [ex.equal(turned, k * 90) for k in range(4)]

    def exact(one: int, minus_one: int, other: Scalar) -> Any:
        quarter = ex.either(ex.either(at[0], at[1]), ex.either(at[2], at[3]))
        return ex.where(at[one], 1, ex.where(at[minus_one], -1, ex.where(quarter, 0, other)))

    return exact(0, 2, _rounded(ex.cos(theta))), exact(1, 3, _rounded(ex.sin(theta)))


def _rounded(x: Scalar) -> Any:
    """Return ``round(x, 15)`` for abs(x) <= 1, bit for bit.

    The product with 1e15 is itself rounded. Its error is computed exactly (Dekker, "A floating-point technique for
    extending the available precision", 1971), so that the sine of 45 degrees rounds to the correct side.
    """
    factor = 1e15
    product = x * factor
    (high, low), (factor_high, factor_low) = _halves(x), _halves(factor)
    error = high * factor_high - product + high * factor_low + low * factor_high + low * factor_low
    nearest = ex.round_even(product)
    rest = product - nearest + error
    return (nearest + ex.where(rest > 0.5, 1, ex.where(rest < -0.5, -1, 0))) / factor


def _halves(x: Scalar) -> tuple[Any, Any]:
    """Return two numbers of 26 bits whose sum is ``x``."""
    shifted = x * 134217729.0
    high = shifted - (shifted - x)
    return high, x - high


def canvas(cos: Scalar, sin: Scalar, height: Scalar, width: Scalar) -> tuple[Any, Any]:
    """Return DALI's canvas: (height, width).

    Source: ``RotatedCanvasSize`` in DALI's rotate_params.h. Sides with the source's parity keep the centres of source
    and canvas on the same half pixel.
    """
    cos, sin = ex.absolute(cos), ex.absolute(sin)
    flat = sin <= cos
    return (
        _same_parity(ex.ceil(cos * height + sin * width - 1e-2), ex.where(flat, height, width)),
        _same_parity(ex.ceil(cos * width + sin * height - 1e-2), ex.where(flat, width, height)),
    )


def _same_parity(n: Scalar, source: Scalar) -> Any:
    return n + (n - source) % 2


def matrix(cos: Any, sin: Any, height: Any, width: Any, out_height: Any, out_width: Any) -> tuple[Any, ...]:
    """Return the map from canvas to image, pixel corners at the integers, computed in the order of Pillow's
    ``Image.rotate``.
    """
    x, y = -(width / 2), -(height / 2)
    shift_x = cos * x + -sin * y + 0.0 + width / 2
    shift_y = sin * x + cos * y + 0.0 + height / 2
    x, y = -((out_width - width) / 2), -((out_height - height) / 2)
    return cos, -sin, cos * x + -sin * y + shift_x, sin, cos, sin * x + cos * y + shift_y
