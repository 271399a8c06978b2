# SPDX-License-Identifier: Apache-2.0
"""``resize_crop_mirror``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import IMAGES_AND_VOLUMES, RowContext
from ...contract.resizing import ResizeArguments
from ...contract.step import Value
from ..geometry.crop import Crop, CropArguments
from ..geometry.resize import Resize


class ResizeCropMirror(ResizeArguments, CropArguments, name="resize_crop_mirror"):
    """Resize, cut a window, mirror. Input: HWC, CHW, HW or these with a leading F. Output: the same layout and type.

    The result has the same bits as ``flip(crop(resize(x)))``.
    """

    default_layouts = IMAGES_AND_VOLUMES
    version = 2  # version 1 rounded to the image's type before `dtype`
    mirror = arg(
        "int", 0, per_row=True, doc="Directions to mirror: the sum of 1 (left and right) and 2 (top and bottom)."
    )
    dtype = arg("dtype", None, doc="Element type of the output; by default the input's.")
    cases = (
        {"size": (12, 14), "crop": (7, 9)},
        {"resize_shorter": 11, "crop": (8, 8), "mirror": 1, "crop_pos_x": 0.1},
        {"resize_x": 20, "crop_h": 3, "mirror": 3, "interp_type": "INTERP_NN", "dtype": "float32"},
    )

    def lower(self, c: Lowering, x: Value) -> Value:
        resized = c.apply("resize", x, dtype=c.const("dtype"), **{k: c.pass_on(k) for k in ResizeArguments.declared()})
        window = c.apply("crop", resized, **{k: c.pass_on(k) for k in CropArguments.declared()})
        mask = c.scalar("mirror")
        known = (mask >= 0) & (mask < 4)
        c.require(known, "expected a `mirror` of 0 to 3 (4, depthwise, is for volumes), got {0}", mask)
        window = c.flip(window, c.axis(window, "W"), mask % 2)
        flipped: Value = c.flip(window, c.axis(window, "H"), ex.floor(mask / 2) % 2)
        return flipped

    def reference(self, row: RowContext, x: Any) -> Any:
        def part(operator: type[Resize | Crop], data: Any) -> Any:
            known = {k: row[k] for k in operator.arguments if k in row.args}
            return operator().reference(RowContext(operator.fill_defaults(known, {}), layouts=row.layouts), data)

        layout, mask = row.layout or {2: "HW", 3: "HWC", 4: "FHWC"}[x.ndim], int(row.number("mirror"))
        out = part(Crop, part(Resize, x))
        return np.flip(out, tuple(layout.index(name) for name, bit in (("W", 1), ("H", 2)) if mask & bit))
