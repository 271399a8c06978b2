# SPDX-License-Identifier: Apache-2.0
"""``equalize``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import IMAGES, Operator, RowContext
from ...contract.step import Launches, LaunchPass, Value
from ...contract.types import DType
from ..geometry._axes import each_frame, image_axes
from ._tiles import is_inner

_VALUES, _CHUNK = 256, 16384  # values of a histogram, pixels per GPU block (native/device/own_equalize.cuh)


class Equalize(Operator, name="equalize"):
    """Spread the values of every channel evenly over 0 to 255. Input: uint8, HW, HWC, CHW or these with a leading F.

    Output: the same. A channel's lowest value becomes 0, its highest 255. A channel with a single value stays. Exact.

    Source: OpenCV's ``equalizeHist``, like DALI's operator. Pillow's ``ImageOps.equalize`` rounds differently.
    """

    default_layouts = IMAGES
    cases = ({},)

    def lower(self, c: Lowering, x: Value) -> Value:
        if x.dtype != DType.UINT8:
            raise UnsupportedError(f"`equalize`: expected uint8, got {x.dtype}. Cast it first")
        axes = image_axes(c, x)
        frames, height, width, channels = (1 if axis < 0 else x.shape[axis] for axis in axes)
        planes, chunks = frames * channels, (height * width + _CHUNK - 1) // _CHUNK
        blocks = chunks * (frames if is_inner(axes) else planes)  # a block has all channels of its pixels
        scratch_bytes = planes * (chunks * _VALUES * 4 + _VALUES)
        chunked = LaunchPass(blocks, resident_threads=1024)
        own = Launches("Equalize", {"count": chunked, "tabulate": planes, "apply": chunked}, scratch_bytes)
        return c.native("equalize", [x], [(x.dtype, x.shape, x.layout)], attrs=axes, params=axes, own=own)[0]

    def reference(self, row: RowContext, x: Any) -> Any:
        return each_frame(
            x, row.layout, lambda frame: np.stack([_equalized(plane) for plane in np.moveaxis(frame, -1, 0)], -1)
        )


def _equalized(plane: Any) -> Any:
    counts = np.bincount(plane.reshape(-1), minlength=256)
    used = np.flatnonzero(counts)
    if len(used) <= 1:
        return plane
    scale = np.float32(255) / np.float32(plane.size - counts[used[0]])
    counts[used[0]] = 0
    table = np.rint(np.cumsum(counts).astype(np.float32) * scale).clip(0, 255).astype(np.uint8)
    return table[plane]
