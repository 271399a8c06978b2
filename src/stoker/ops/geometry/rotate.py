# SPDX-License-Identifier: Apache-2.0
"""``rotate``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import ArgumentError, UnsupportedError
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.step import Value
from ._warp import WarpArguments, carrier_type, requested_size, warp, warp_array


class Rotate(WarpArguments, name="rotate"):
    """Rotate images about their centre. Input: HWC, CHW, HW or these with a leading F. Output: the same layout.

    The canvas is DALI's: large enough for the whole image, with the image's parity, or determined by ``keep_size`` and
    ``size``. Multiples of 90 degrees are exact. uint8 on Pillow's canvas with a fill value equals Pillow's
    ``Image.rotate`` (NEAREST, BILINEAR) bit for bit.
    """

    version = 2  # version 1 rounded to the image's type before `dtype`
    angle = arg("float", per_row=True, doc="Angle in degrees, counter-clockwise. Per frame with a fixed canvas.")
    axis = arg("float", None, many=True, doc="For volumes, which are not supported.")
    keep_size = arg("bool", False, doc="Keep the image's size.")
    cases = (
        {"angle": 30.0},
        {"angle": -117.5, "fill_value": 9.0, "interp_type": "INTERP_NN"},
        {"angle": 90.0, "fill_value": 0.0},
        {"angle": 45.0, "keep_size": True, "fill_value": 200.0},
        {"angle": 10.0, "size": (9, 20), "dtype": "float32"},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        if c.given("axis"):
            raise UnsupportedError("`rotate`: `axis` is for volumes, which are not supported; images need just `angle`")
        carrier_type(c, x)
        height, width, angle = c.extent(x, "H"), c.extent(x, "W"), c.scalar("angle")
        c.require(ex.isfinite(angle), "expected a finite `angle`, got {0}", angle)
        c.require(ex.both(height > 0, width > 0), "expected an image with pixels, got {0} x {1}", height, width)
        cos, sin = _turn(angle)
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
        edge = c.scope.edges.get("angle")
        if edge is not None and edge.per_frame:
            raise ArgumentError("`rotate`: angles per frame need one canvas for all: set `keep_size` or `size`")
        return canvas(cos, sin, height, width)

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        at = layout.find("F")
        frames = np.moveaxis(x, at, 0) if at >= 0 else x[None]
        angles = np.asarray(row["angle"], np.float64).reshape(-1)
        out = [
            self._rotated(row, frame, layout.replace("F", ""), float(angles[i if len(angles) > 1 else 0]))
            for i, frame in enumerate(frames)
        ]
        return np.stack(out, at) if at >= 0 else out[0]

    def _rotated(self, row: RowContext, x: Any, layout: str, angle: float) -> Any:
        height, width = x.shape[layout.index("H")], x.shape[layout.index("W")]
        theta = math.radians(angle % 360)
        cos, sin = round(math.cos(theta), 15), round(math.sin(theta), 15)
        if row["size"] is not None:
            out_height, out_width = (int(row.number("size", i) + 0.5) for i in (0, 1))
        elif row["keep_size"]:
            out_height, out_width = height, width
        else:
            sides = (height, width) if abs(sin) <= abs(cos) else (width, height)
            out_height = math.ceil(abs(cos) * height + abs(sin) * width - 1e-2)
            out_width = math.ceil(abs(cos) * width + abs(sin) * height - 1e-2)
            out_height, out_width = out_height + (out_height - sides[0]) % 2, out_width + (out_width - sides[1]) % 2
        m = matrix(cos, sin, height, width, out_height, out_width)
        return warp_array(row, x, layout, m, out_height, out_width)


def _turn(angle: Scalar) -> tuple[Any, Any]:
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
