# SPDX-License-Identifier: Apache-2.0
"""``roi_align``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import GpuForm, Launches, LaunchPass, Value
from ...contract.types import DType
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

_GROUP = 32  # channels of a block on a GPU (native/device/roi.cuh)
_RESIDENT = {DType.FLOAT: 768, DType.FLOAT64: 512}  # threads of a multiprocessor, as of stoker.torch.ops


class RoiAlign(Operator, name="roi_align"):
    """Pool regions of an image or feature map into bins, with linear interpolation (RoIAlign).

    Inputs: an image (H, W, C), or (C, H, W) with that layout, and boxes ``x0, y0, x1, y1`` of shape (N, 4) of the
    image's type, float32 or float64. Output: (N, height, width, C), or (N, C, height, width). With ``argmax``, a second
    output has the number of the sample in its bin that is the maximum, int32.

    Each bin is the average (or maximum) of a grid of samples. Samples more than a pixel outside the image are zero. The
    results of "avg" have the bits of torchvision's CPU kernel for images of finite numbers.

    A GPU cannot report a region of a row without waiting for it: there, results are NaN where the CPU raises an error,
    for coordinates that are not finite, or more than 2**24 samples in a region. Its boxes may be kept ones (``nms`` and
    others) that ``fn.gather`` has taken. The output has a region for each, and their number is known when the batch is
    done.
    """

    inputs = (2, 2)
    output_size = arg("int", many=True, per_axis=True, doc=SIZE_DOC)
    spatial_scale = arg("float", 1.0, per_row=True, doc=SCALE_DOC)
    sampling_ratio = arg(
        "int", 0, doc="Samples of a bin along each axis; 0 or less: the size of the bin in pixels, rounded up."
    )
    aligned = arg("bool", False, doc="Shift the samples by half a pixel, so that pixel centres are at .5.")
    mode = arg("str", "avg", choices=("avg", "max"), doc="Average or maximum of the samples of a bin.")
    argmax = arg("bool", False, doc='Return also the number of the sample that is the maximum. Only for "max".')
    cases = (
        {"output_size": (3, 2)},
        {"output_size": 2, "sampling_ratio": 2, "aligned": True, "spatial_scale": 0.5},
        {"output_size": 2, "mode": "max"},
        {"output_size": (2, 3), "mode": "max", "argmax": True, "sampling_ratio": 3},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return case_rows()

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return 2 if args.get("argmax") else 1

    def lower(self, c: Lowering, x: Value, boxes: Value) -> Value | tuple[Value, ...]:
        size, samples_given = output_size(c), int(c.const("sampling_ratio"))
        maximum, chosen = c.const("mode") == "max", bool(c.const("argmax"))
        c.expect(samples_given <= 1 << 15, f"expected `sampling_ratio` up to 2**15, got {samples_given}")
        c.expect(maximum or not chosen, 'expected `mode="max"` with `argmax=True`, got "avg"')
        planes, last = planes_of(c, x, boxes)
        shape, layout = pooled_shape(planes, boxes, size, last)
        outputs = [(planes.dtype, shape, layout)] + ([(DType.INT32, shape, layout)] if chosen else [])
        attrs = (*size, max(samples_given, 0), bool(c.const("aligned")), maximum, last, chosen)
        blocks = boxes.shape[0] * ((planes.shape[0] + _GROUP - 1) // _GROUP)
        flags = (int(last), int(maximum), int(bool(c.const("aligned"))), max(samples_given, 0))
        own = Launches("RoiAlign", {"regions": LaunchPass(blocks, resident_threads=_RESIDENT[planes.dtype])}, 0, flags)
        scale = c.scalar("spatial_scale")
        result = c.native(
            "roi_align", [planes, boxes], outputs, attrs=attrs, params=(scale, *own.numbers()),
            gpu=GpuForm(own.kernel(), follows=1),
        )  # fmt: skip
        return result if chosen else result[0]

    def reference(self, row: RowContext, x: Any, boxes: Any) -> Any:
        x, (height, width) = planar_reference(row, x), (row["output_size"] * 2)[:2]
        real: Any = x.dtype.type
        scale, offset = real(row.number("spatial_scale")), real(0.5 if row["aligned"] else 0)
        out = np.zeros((len(boxes), len(x), height, width), real)
        chosen = np.full(out.shape, -1, np.int32)
        for k, box in enumerate(np.asarray(boxes, real)):
            x0, y0, x1, y1 = (real(v) for v in box * scale - offset)
            sides = [y1 - y0, x1 - x0] if row["aligned"] else [max(y1 - y0, real(1)), max(x1 - x0, real(1))]
            bins = sides[0] / real(height), sides[1] / real(width)
            given = row["sampling_ratio"]
            counts = [given if given > 0 else max(math.ceil(b), 0) for b in bins]
            for by, bx in np.ndindex(height, width):
                values = [
                    _sampled(x, y0 + real(by) * bins[0] + real(i + 0.5) * bins[0] / real(counts[0]),
                             x0 + real(bx) * bins[1] + real(j + 0.5) * bins[1] / real(counts[1]))
                    for i in range(counts[0]) for j in range(counts[1])
                ]  # fmt: skip
                if row["mode"] == "max" and values:
                    out[k, :, by, bx] = np.max(values, 0)
                    chosen[k, :, by, bx] = np.argmax(values, 0)
                elif values:
                    total = np.zeros(len(x), real)
                    for value in values:
                        total = total + value
                    out[k, :, by, bx] = total / real(len(values))
        return (in_layout(row, out), in_layout(row, chosen)) if row["argmax"] else in_layout(row, out)


def _sampled(x: Any, y: Any, at: Any) -> Any:
    """Return the interpolated channels of planar features at a point."""
    real = x.dtype.type
    height, width = x.shape[1:]
    if not (-1 <= y <= height and -1 <= at <= width):
        return np.zeros(len(x), real)
    parts = []
    for v, extent in ((y, height), (at, width)):
        v = max(v, real(0))
        low = min(int(v), extent - 1)
        upper = real(0) if low == extent - 1 else real(v - real(low))
        parts.append((low, min(low + 1, extent - 1), real(1) - upper, upper))
    (y0, y1, hy, ly), (x0, x1, hx, lx) = parts
    return (hy * hx) * x[:, y0, x0] + (hy * lx) * x[:, y0, x1] + (ly * hx) * x[:, y1, x0] + (ly * lx) * x[:, y1, x1]
