# SPDX-License-Identifier: Apache-2.0
"""Shared code of operators that pool regions of images."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import samples
from ...contract.lowering import Lowering
from ...contract.scope import Scoped
from ...contract.step import Value
from ._boxes import boxes_in, expect_floats, require_columns

SIZE_DOC = "Bins (height, width) of each region; one number for both."
SCALE_DOC = "Factor from the boxes' coordinates to pixels of the input: 1/16 for a map that is 16 times smaller."


def output_size(c: Scoped) -> tuple[int, int]:
    """Return the number of bins, down and across."""
    size = c.const("output_size")
    ok = len(size) in (1, 2) and all(1 <= n <= 1 << 15 for n in size)
    c.expect(ok, f"expected `output_size` of one or two numbers from 1 to 2**15, got {list(size)}")
    return int(size[0]), int(size[-1])


def planes_of(c: Lowering, x: Value, boxes: Value) -> tuple[Value, bool]:
    """Return planar features, and whether the channels come last in the input. Check the boxes."""
    layout = c.layout(x)
    c.expect(layout in ("HWC", "CHW"), f"expected an image of layout HWC or CHW, got {layout!r} with {x.rank} axes")
    expect_floats(c, x, "an image", 3)
    expect_floats(c, boxes, "boxes", 2)
    c.expect(x.dtype == boxes.dtype, f"expected boxes of the image's type, {x.dtype}, got {boxes.dtype}")
    require_columns(c, boxes, 4)
    last = layout == "HWC"
    planes = c.permute(x, [2, 0, 1], "CHW") if last else x
    c.require(
        (planes.shape[1] > 0) * (planes.shape[2] > 0),
        "expected an image with pixels, got {0} x {1}",
        planes.shape[1],
        planes.shape[2],
    )
    return planes, last


def pooled_shape(planes: Value, boxes: Value, size: tuple[int, int], last: bool) -> tuple[tuple[Any, ...], str]:
    """Return extents and layout of the pooled regions."""
    n, channels = boxes.shape[0], planes.shape[0]
    return ((n, *size, channels), "FHWC") if last else ((n, channels, *size), "FCHW")


def planar_reference(row: Any, x: Any) -> Any:
    """Return an image as [C,H,W] floats."""
    x = np.asarray(x)
    return x if row.layout == "CHW" else x.transpose(2, 0, 1)


def in_layout(row: Any, pooled: Any) -> Any:
    """Return pooled regions [N,C,h,w] in the layout of the input."""
    return pooled if row.layout == "CHW" else pooled.transpose(0, 2, 3, 1)


def case_rows(dtype: str = "float32") -> samples.Rows:
    """Return images with boxes in and around them."""
    shapes = ((13, 17, 3), (9, 11, 20), (5, 4, 1))
    rows = [(samples.noise(i, shape, dtype), boxes_in(i, n, 20.0) - np.float32(4)) for i, (shape, n) in enumerate(
        zip(shapes, (4, 0, 7), strict=True))]  # fmt: skip
    return samples.each(*rows)
