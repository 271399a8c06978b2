# SPDX-License-Identifier: Apache-2.0
"""``coarse_dropout``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType
from ..generic.cast import cast_array
from ._regions import erased, erased_reference

_UNIFORM = 0  # number of the distribution in native/shared/draws.hpp
_NUMBERS = 4  # draws of a hole: height, width, y, x
_MOST_HOLES = 32


class CoarseDropout(Operator, name="coarse_dropout"):
    """Fill random rectangles of an image. Input: images of any type, with axes H and W. Output: the same.

    The number of holes, their sizes and their places are drawn for each sample. A hole has at least one pixel and lies
    inside of the image. All channels and frames have the same holes. Cutout is ``holes=1``. Source: DeVries and Taylor,
    "Improved regularization of convolutional neural networks with Cutout" (2017).
    """

    gives_bfloat16 = takes_bfloat16 = True
    draws = 1
    holes = arg("int", (1, 8), many=True, doc="Smallest and largest number of holes, or the number; at most 32.")
    height = arg(
        "float", (0.1, 0.2), many=True, doc="Range of a hole's height as a share of the image's, or the share."
    )
    width = arg("float", (0.1, 0.2), many=True, doc="Range of a hole's width as a share of the image's, or the share.")
    fill_value = arg("float", (0.0,), many=True, per_row=True, doc="One value, or one for each channel.")
    cases = ({}, {"holes": 3, "height": 0.5, "width": (0.1, 0.9), "fill_value": (1, 2, 3)}, {"holes": (0, 1)})

    def validate(self, args: Mapping[str, Any]) -> None:
        for name, low, high in (("holes", 0, _MOST_HOLES), ("height", 0, 1), ("width", 0, 1)):
            limits = args[name]
            ordered = len(limits) in (1, 2) and limits[0] <= limits[-1]
            if not ordered or limits[0] < low or limits[-1] > high:
                raise ArgumentError(
                    f"`coarse_dropout`: expected a number or a range within {low} to {high} as `{name}`, got {limits}"
                )

    def lower(self, c: Lowering, x: Value) -> Value:
        most = c.const("holes")[-1]
        if most == 0:
            return c.view(x, ())
        count = 1 + _NUMBERS * most
        drawn = c.native("draw", [], [(DType.FLOAT64, (count,), "")], attrs=(_UNIFORM, *c.draw), params=(0, 1))[0]
        numbers = [c.element(drawn, i) for i in range(count)]
        least = c.const("holes")[0]
        holes = least + ex.floor(numbers[0] * (most - least + 1))
        axes = [c.axis(x, name) for name in "HW"]
        limits = [c.const(name) for name in ("height", "width")]
        anchors: list[Scalar] = []
        shapes: list[Scalar] = []
        for k in range(most):
            own = numbers[1 + _NUMBERS * k : 1 + _NUMBERS * (k + 1)]
            for i, axis in enumerate(axes):
                n, (low, high) = x.shape[axis], (limits[i][0], limits[i][-1])
                size = ex.maximum(ex.floor((low + (high - low) * own[i]) * n), 1)
                anchors.append(ex.floor(own[2 + i] * (n - size + 1)))
                shapes.append(ex.where(holes > k, size, 0))
        places = (c.numbers(place, DType.FLOAT64) for place in (anchors, shapes))
        return erased(c, x, axes, *places, whole=True)

    def reference(self, row: RowContext, x: Any) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        least, most = row["holes"][0], row["holes"][-1]
        numbers = [row.stream.uniform() for _ in range(1 + _NUMBERS * most)] if most else [0.0]
        regions = []
        for k in range(least + math.floor(numbers[0] * (most - least + 1))):
            own = numbers[1 + _NUMBERS * k : 1 + _NUMBERS * (k + 1)]
            region = {}
            for i, (name, limits) in enumerate(zip("HW", (row["height"], row["width"]), strict=True)):
                n = x.shape[layout.index(name)]
                size = max(math.floor((limits[0] + (limits[-1] - limits[0]) * own[i]) * n), 1)
                start = math.floor(own[2 + i] * (n - size + 1))
                region[layout.index(name)] = (start, start + size)
            regions.append(region)
        fills = cast_array(np.asarray(row["fill_value"], np.float64).reshape(-1), DType.of(x.dtype))
        return erased_reference(x, regions, fills, layout.find("C"))
