# SPDX-License-Identifier: Apache-2.0
"""``random_crop_generator``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType

_MAX_ATTEMPTS = 100_000


class RandomCropGenerator(Operator, name="random_crop_generator"):
    """Draw a window of random area and aspect ratio.

    Input: a shape, (height, width) or (height, width, channels). Outputs: the window's anchor (y, x) and shape (h, w),
    int64. The area's share is uniform, the ratio log-uniform. If ``num_attempts`` windows do not fit, the largest
    centred window of a permitted ratio is used.

    Source: torchvision's ``RandomResizedCrop.get_params``.
    """

    devices = ("cpu",)
    outputs = 2
    draws = 1
    num_attempts = arg("int", 10, doc="Attempts before the largest centred window of a permitted ratio is taken.")
    random_area = arg(
        "float", (0.08, 1.0), many=True, doc="Range of the window's share of the area, above 0 and up to 1."
    )
    random_aspect_ratio = arg("float", (3 / 4, 4 / 3), many=True, doc="Range of width over height, above 0.")
    cases = ({}, {"random_area": (0.5, 1.0)}, {"random_aspect_ratio": (1.0, 1.0)})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.each(np.array([20, 31, 3]), np.array([300, 7, 3]), np.array([1, 1, 1]))

    def lower(self, c: Lowering, shape: Value) -> tuple[Value, ...]:
        area, ratio = c.const("random_area"), c.const("random_aspect_ratio")
        c.require(len(area) == 2 and 0 < area[0] <= area[1], "expected `random_area` as a range of positive numbers")
        c.require(
            len(ratio) == 2 and 0 < ratio[0] <= ratio[1],
            "expected `random_aspect_ratio` as a range of positive numbers",
        )
        c.require(
            0 <= c.const("num_attempts") <= _MAX_ATTEMPTS,
            f"expected 0 <= `num_attempts` <= {_MAX_ATTEMPTS}: each attempt takes time for each row",
        )
        height, width = c.element(shape, 0), c.element(shape, 1)
        return c.native(
            "crop_window", [shape], [(DType.INT64, (2,), ""), (DType.INT64, (2,), "")],
            attrs=(*c.draw, c.const("num_attempts")), params=(height, width, *area, *ratio),
        )  # fmt: skip

    def reference(self, row: RowContext, shape: Any) -> Any:
        height, width = float(shape[0]), float(shape[1])
        (low, high), ratio = row["random_area"], row["random_aspect_ratio"]
        log_low, log_high = math.log(ratio[0]), math.log(ratio[1])
        for _ in range(row["num_attempts"]):
            area = height * width * (low + (high - low) * row.stream.uniform())
            aspect = math.exp(log_low + (log_high - log_low) * row.stream.uniform())
            w, h = float(round(math.sqrt(area * aspect))), float(round(math.sqrt(area / aspect)))
            if 0 < w <= width and 0 < h <= height:
                y = math.floor(row.stream.uniform() * (height - h + 1))
                x = math.floor(row.stream.uniform() * (width - w + 1))
                return np.asarray([y, x], np.int64), np.asarray([h, w]).astype(np.int64)
        h, w = height, width
        if width / height < ratio[0]:
            h = round(w / ratio[0])
        elif width / height > ratio[1]:
            w = round(h * ratio[1])
        h, w = max(1, min(h, height)), max(1, min(w, width))
        anchor = np.asarray([(height - h) // 2, (width - w) // 2])
        return anchor.astype(np.int64), np.asarray([h, w]).astype(np.int64)
