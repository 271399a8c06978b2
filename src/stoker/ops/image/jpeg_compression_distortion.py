# SPDX-License-Identifier: Apache-2.0
"""``jpeg_compression_distortion``."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from ..._image_formats import pillow
from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import COLOURS, Operator, RowContext
from ...contract.step import Launches, LaunchPass, Value
from ...contract.types import DType
from ..geometry._axes import each_frame, image_axes

_MOST_PIXELS = 65500  # of a side, as in libjpeg
_SIDE, _SAMPLES = 16, 384  # of an MCU with halved chroma
_MCUS, _GROUPS = 32, 2048  # of a GPU block; also in native/device/own_jpegdistortion.cuh
_RESIDENT = 1024


class JpegCompressionDistortion(Operator, name="jpeg_compression_distortion"):
    """Compress images as JPEG files and decompress them. Input: uint8 RGB, HWC, CHW or these with a leading F. Output:
    the same.

    Exact: the bytes that Pillow gives when it saves a file with 4:2:0 subsampling and opens it. Only the lossless part
    of the file format is left out, on the CPU and on GPUs.
    """

    default_layouts = COLOURS
    quality = arg("int", 50, per_row=True, doc="Quality of the compression, 1 to 100. Numbers beyond are clamped.")
    cases = ({}, {"quality": 5}, {"quality": 95}, {"quality": 1000})

    def lower(self, c: Lowering, x: Value) -> Value:
        if x.dtype != DType.UINT8:
            raise UnsupportedError(f"`jpeg_compression_distortion`: expected uint8, got {x.dtype}. Cast it first")
        axes = image_axes(c, x)
        channels = 1 if axes[3] < 0 else x.shape[axes[3]]
        c.require(ex.equal(channels, 3), "expected 3 channels of RGB, got {0}", channels)
        for axis in axes[1:3]:
            n = x.shape[axis]
            c.require(
                ex.both(n >= 1, n <= _MOST_PIXELS), "expected 1 to {1} pixels on a side, got {0}", n, _MOST_PIXELS
            )
        quality = ex.clamp(c.scalar("quality"), 1, 100)
        frames, height, width = (1 if axis < 0 else x.shape[axis] for axis in axes[:3])
        mcus = frames * ((height + _SIDE - 1) // _SIDE) * ((width + _SIDE - 1) // _SIDE)
        groups = frames * height * (width // 4 + 2)
        own = Launches(
            "JpegDistortion",
            {
                "transform": LaunchPass((mcus + _MCUS - 1) // _MCUS, resident_threads=_RESIDENT),
                "pixels": LaunchPass((groups + _GROUPS - 1) // _GROUPS, resident_threads=_RESIDENT),
            },
            mcus * _SAMPLES,
        )
        return c.native(
            "jpeg_distortion", [x], [(x.dtype, x.shape, x.layout)], attrs=axes, params=(quality, *axes), own=own
        )[0]  # fmt: skip

    def reference(self, row: RowContext, x: Any) -> Any:
        Image = pillow()
        quality = min(max(int(row.number("quality")), 1), 100)

        def saved(frame: Any) -> Any:
            file = io.BytesIO()
            Image.fromarray(np.ascontiguousarray(frame)).save(file, "JPEG", quality=quality, subsampling="4:2:0")
            with Image.open(file) as image:
                return np.asarray(image)

        return each_frame(x, row.layout, saved)
