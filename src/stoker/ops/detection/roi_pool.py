# SPDX-License-Identifier: Apache-2.0
"""``roi_pool``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import GpuForm, Launches, Value
from ._regions import (
    SCALE_DOC,
    SIZE_DOC,
    case_rows,
    in_layout,
    output_size,
    planar_reference,
    planes_of,
    pooled_shape,
)


class RoiPool(Operator, name="roi_pool"):
    """Take the maximum of the pixels in each bin of regions of an image or feature map (RoI pooling).

    Inputs: an image (H, W, C), or (C, H, W) with that layout, and boxes ``x0, y0, x1, y1`` of shape (N, 4) of the
    image's type, float32 or float64. Output: (N, height, width, C), or (N, C, height, width).

    Corners are rounded to pixels, halves away from zero, and both corners belong to the region. Bins outside the image
    are 0. The results are those of torchvision's CPU kernel.

    A GPU cannot report a region of a row without waiting for it: there, results are NaN where the CPU raises an error,
    for coordinates that are not finite or beyond 2**30. Its boxes may be kept ones (``nms`` and others) that
    ``fn.gather`` has taken; the output has a region for each, whose number is known when the batch is done.
    """

    inputs = (2, 2)
    output_size = arg("int", many=True, per_axis=True, doc=SIZE_DOC)
    spatial_scale = arg("float", 1.0, per_row=True, doc=SCALE_DOC)
    cases = ({"output_size": (3, 2)}, {"output_size": 2, "spatial_scale": 0.5})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return case_rows()

    def lower(self, c: Lowering, x: Value, boxes: Value) -> Value:
        size = output_size(c)
        planes, last = planes_of(c, x, boxes)
        shape, layout = pooled_shape(planes, boxes, size, last)
        bins = boxes.shape[0] * planes.shape[0] * (size[0] * size[1])
        own = Launches("RoiPool", {"bins": (bins + 255) // 256}, constants=(int(last),))
        return c.native(
            "roi_pool", [planes, boxes], [(planes.dtype, shape, layout)], attrs=(*size, last),
            params=(c.scalar("spatial_scale"), *own.numbers()), gpu=GpuForm(own.kernel(), follows=1),
        )[0]  # fmt: skip

    def reference(self, row: RowContext, x: Any, boxes: Any) -> Any:
        x, bins = planar_reference(row, x), (row["output_size"] * 2)[:2]
        real: Any = x.dtype.type
        out = np.zeros((len(boxes), len(x), *bins), real)
        for k, box in enumerate(np.asarray(boxes, real)):
            corners = [math.copysign(math.floor(abs(v) + 0.5), v) for v in box * real(row.number("spatial_scale"))]
            x0, y0, x1, y1 = (int(v) for v in corners)
            starts, sides = (y0, x0), (max(y1 - y0 + 1, 1), max(x1 - x0 + 1, 1))
            for at in np.ndindex(*bins):
                window = [slice(None)]
                for axis in range(2):
                    step = real(sides[axis]) / real(bins[axis])
                    low, high = math.floor(real(at[axis]) * step), math.ceil(real(at[axis] + 1) * step)
                    window.append(slice(max(low + starts[axis], 0), max(high + starts[axis], 0)))
                pixels = x[tuple(window)].reshape(len(x), -1)
                if pixels.shape[1]:
                    out[k, :, at[0], at[1]] = np.maximum(pixels.max(1), real(np.finfo(np.float32).min))
        return in_layout(row, out)
