# SPDX-License-Identifier: Apache-2.0
"""``cutmix``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.pixel import binary, load, select, uniform
from ...contract.step import Value
from ...contract.types import DType
from ._mixing import MixArguments, checked_weight, mixed_labels, mixed_labels_reference, require_pair

_UNIFORM = 0  # number of the distribution in native/shared/draws.hpp


class CutMix(MixArguments, name="cutmix"):
    """Replace a random rectangle of an image by that of another one, and mix their labels by area (Yun et al.,
    "CutMix", 2019). Inputs: two images of one shape and type, with axes H and W; optionally their labels: whole
    numbers, or floats (classes,). Outputs: the image; the soft label, float32, or the type of soft labels.

    The rectangle has the image's proportions and ``1 - weight`` of its area, its centre is uniform over all pixels, and
    it is cut at the edges. Labels have the shares of the pixels. Source: torchvision's ``CutMix``. `readers.partner`
    reads the second sample, so that the batch size changes nothing.
    """

    inputs = (2, 4)
    draws = 1
    cases = ({"weight": 0.3}, {"weight": 0.8, "num_classes": 5}, {"weight": 0.0, "num_classes": 5})

    def lower(self, c: Lowering, x: Value, other: Value, *labels: Value) -> tuple[Value, ...]:
        weight = checked_weight(c)
        require_pair(c, x, other)
        drawn = c.native("draw", [], [(DType.FLOAT64, (2,), "")], attrs=(_UNIFORM, *c.draw), params=(0, 1))[0]
        reach = 0.5 * ex.sqrt(1 - weight)
        inside: Any = None
        area: Any = 1
        for i, name in enumerate("HW"):
            extent = c.extent(x, name)
            c.require(extent > 0, "expected images with pixels, got {0} along an axis", extent)
            centre, half = ex.floor(c.element(drawn, i) * extent), ex.floor(reach * extent)
            low, high = ex.maximum(centre - half, 0), ex.minimum(centre + half, extent)
            area = area * (high - low) / extent
            at = c.coordinate(x, name)
            for operation, edge in (("ge", low), ("lt", high)):
                test = binary(operation, at, uniform(edge, DType.INT32))
                inside = test if inside is None else binary("and", inside, test)
        out = c.pointwise([x, other], select(inside, load(x.dtype, 1), load(x.dtype, 0)))
        return (out, *mixed_labels(c, labels, ex.float32(1 - area)))

    def reference(self, row: RowContext, x: Any, other: Any, *labels: Any) -> Any:
        weight = float(np.float32(row.number("weight")))
        if not 0 <= weight <= 1 or x.shape != other.shape:
            raise ValueError("expected a weight from 0 to 1, and images of one shape")
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        reach, area, window = 0.5 * math.sqrt(1 - weight), 1.0, [slice(None)] * x.ndim
        for name in "HW":
            extent = x.shape[layout.index(name)]
            centre, half = math.floor(row.stream.uniform() * extent), math.floor(reach * extent)
            low, high = max(centre - half, 0), min(centre + half, extent)
            area = area * (high - low) / extent
            window[layout.index(name)] = slice(low, high)
        out = x.copy()
        out[tuple(window)] = other[tuple(window)]
        found = (out, *mixed_labels_reference(row, labels, np.float32(1 - area)))
        return found if len(found) > 1 else out
