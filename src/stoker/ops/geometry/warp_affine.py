# SPDX-License-Identifier: Apache-2.0
"""``warp_affine``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.step import Value
from ._warp import (
    WarpArguments,
    carrier_type,
    matrix_numbers,
    requested_size,
    requested_volume,
    require_sampled,
    warp,
    warp_array,
)
from ._warp_volume import inverse_volume, volume_extents, warp_volume, warp_volume_array

_ELEMENTS = 6
_VOLUME = 12


class WarpAffine(WarpArguments, name="warp_affine"):
    """Warp images and volumes by an affine matrix. Inputs: HWC, CHW, HW or these with a leading F, or an axis D before
    H; a matrix unless ``matrix`` is given.

    The matrix's six numbers, rows first, map a point (x, y) of the output to one of the input, corners of pixels at the
    integers: ``(m0 x + m1 y + m2, m3 x + m4 y + m5)``. Volumes take twelve numbers, for (x, y, z).
    Without ``inverse_map`` the direction is reversed. uint8 with a
    fill value equals Pillow's ``Image.transform(size, AFFINE, ...)`` (NEAREST, BILINEAR) bit for bit. Interpolated
    values are truncated; DALI rounds them. Volumes are rounded, and mixed with the fill value at their faces, as in
    DALI. INTERP_CUBIC is a cubic convolution of coefficient -3/4 at float32 coordinates, as in OpenCV, mixed with the
    fill value at the edges and rounded; DALI has none.
    """

    version = 2  # version 1 rounded to the image's type before `dtype`
    inputs = (1, 2)
    matrix = arg(
        "float", None, many=True, per_row=True, doc="Six numbers, of a volume twelve; per frame for videos, too."
    )
    inverse_map = arg("bool", True, doc="The matrix takes the output to the input; False: the input to the output.")
    cases = (
        {"matrix": (0.9, 0.2, 1.5, -0.1, 1.1, -0.75), "fill_value": 9.0},
        {"matrix": (0.9, 0.2, 1.5, -0.1, 1.1, -0.75), "inverse_map": False},
        {"matrix": (0.8, 0.3, -2.0, 0.1, 0.7, 3.0), "interp_type": "INTERP_NN", "size": (9, 20), "fill_value": 0.0},
        {"matrix": (2.0, 0.0, 0.0, 0.0, 2.0, 0.0), "size": (6, 7), "dtype": "float32"},
        {"matrix": (0.5, 0.1, 0.5, -0.1, 0.6, 1.0), "interp_type": "INTERP_CUBIC", "fill_value": 9.0},
    )

    def lower(self, c: Lowering, x: Value, matrix: Value | None = None) -> Value:
        carrier_type(c, x)
        if "D" in c.layout(x):
            return self._volume(c, x, matrix)
        height, width = c.extent(x, "H"), c.extent(x, "W")
        require_sampled(c, height, width)
        m = matrix_numbers(c, matrix, _ELEMENTS)
        for number in m:
            c.require(ex.isfinite(number), "expected a finite matrix, got {0}", number)
        if not c.const("inverse_map"):
            det = m[0] * m[4] - m[1] * m[3]
            c.require(ex.absolute(det) > 0, "expected a matrix that can be inverted, got one of determinant {0}", det)
            m = inverse(m)
        out_height, out_width = requested_size(c) if c.given("size") else (height, width)
        return warp(c, x, tuple(m), out_height, out_width)

    @staticmethod
    def _volume(c: Lowering, x: Value, matrix: Value | None) -> Value:
        extents = volume_extents(c, x)
        m = matrix_numbers(c, matrix, _VOLUME)
        for number in m:
            c.require(ex.isfinite(number), "expected a finite matrix, got {0}", number)
        if not c.const("inverse_map"):
            det = inverse_volume(m)[1]
            c.require(ex.absolute(det) > 0, "expected a matrix that can be inverted, got one of determinant {0}", det)
            m = inverse_volume(m)[0]
        return warp_volume(c, x, m, requested_volume(c) if c.given("size") else extents)

    def reference(self, row: RowContext, x: Any, matrix: Any = None) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        numbers = row["matrix"] if matrix is None else matrix
        if "D" in layout:
            given = np.asarray(numbers, np.float64).reshape(-1, _VOLUME)
            volumes = [m if row["inverse_map"] else inverse_volume(m)[0] for m in given.tolist()]
            extents = [x.shape[layout.index(name)] for name in "DHW"]
            canvas = extents if row["size"] is None else [int(row.number("size", k) + 0.5) for k in range(3)]
            return warp_volume_array(row, x, layout, volumes, canvas)
        at = layout.find("F")
        count = x.shape[at] if at >= 0 else 1
        frames = np.moveaxis(x, at, 0) if at >= 0 else x[None]
        frames = frames if count else np.zeros((1, *frames.shape[1:]), x.dtype)  # of no frame only the shape is left
        matrices = np.asarray(numbers, np.float64).reshape(-1, _ELEMENTS)
        inner = layout.replace("F", "")
        out = []
        for i, frame in enumerate(frames):
            m = [float(v) for v in matrices[i if len(matrices) > 1 else 0]]
            m = m if row["inverse_map"] else inverse(m)
            size = [int(row.number("size", k) + 0.5) for k in (0, 1)] if row["size"] is not None else None
            height, width = size or (frame.shape[inner.index("H")], frame.shape[inner.index("W")])
            out.append(warp_array(row, frame, inner, m, height, width))
        return np.take(np.stack(out, at), range(count), at) if at >= 0 else out[0]


def inverse(m: Any) -> list[Any]:
    """Return the inverse of ``m``."""
    det = m[0] * m[4] - m[1] * m[3]
    a, b, d, e = m[4] / det, -m[1] / det, -m[3] / det, m[0] / det
    return [a, b, -(a * m[2] + b * m[5]), d, e, -(d * m[2] + e * m[5])]
