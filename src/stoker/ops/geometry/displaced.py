# SPDX-License-Identifier: Apache-2.0
"""``_displaced``: the sampling of `elastic`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.pixel import load, uniform
from ...contract.step import Value
from ...contract.types import DType, InterpType
from ._map import MapArguments, height_and_width, mapped, mapped_reference, pixel_places


class Displaced(MapArguments, name="_displaced"):
    """Sample an image at distances from its pixels. Inputs: the image; rows and columns, float32, HW."""

    hidden = True
    inputs = (3, 3)
    alpha = arg("float", 1.0, per_row=True, doc="Factor of the distances.")
    cases = ({"alpha": 3.0}, {"alpha": 3.0, "interp_type": "INTERP_CUBIC", "fill_value": 7.0})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return [
            (x, *(samples.noise(i, x.shape[:2], "float32") / np.float32(300) for i in (1, 2)))
            for (x,) in samples.images()
        ]

    def lower(self, c: Lowering, x: Value, down: Value, across: Value) -> Value:
        alpha = c.scalar("alpha")
        c.require(ex.isfinite(alpha), "expected a finite `alpha`, got {0}", alpha)
        height_and_width(c, x)
        kind = c.const("interp_type")
        half = 0.5 if kind == InterpType.INTERP_NN else 0.0
        maps = [
            c.pointwise([field], own + load(DType.FLOAT) * uniform(alpha) + half)
            for field, own in zip((down, across), pixel_places(), strict=True)
        ]
        return mapped(c, x, maps[0], maps[1], kind, fill=c.const("fill_value"))

    def reference(self, row: RowContext, x: Any, down: Any, across: Any) -> Any:
        layout = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim]
        kind = row["interp_type"]
        half, alpha = np.float32(0.5 if kind == InterpType.INTERP_NN else 0), np.float32(row.number("alpha"))
        maps = [
            own.astype(np.float32) + field * alpha + half
            for own, field in zip(np.indices(down.shape), (down, across), strict=True)
        ]
        return mapped_reference(x, layout, maps[0], maps[1], kind, fill=row["fill_value"])
