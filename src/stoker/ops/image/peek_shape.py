# SPDX-License-Identifier: Apache-2.0
"""``peek_image_shape``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ...contract.types import DType, ImageType
from ._decoding import limit_of, peek
from ._encoded import image_files
from ._pillow_decoding import pillow_decode


class PeekImageShape(Operator, name="peek_image_shape"):
    """Read an image's shape from its header. Input: a file's bytes. Output: ``(3,)``: height, width, channels."""

    devices = ("cpu",)
    adjust_orientation = arg("bool", True, doc="Return the shape after the EXIF orientation is applied.")
    image_type = arg("image_type", ImageType.RGB, doc="Colour model that decides the number of channels.")
    scale_denom = arg("int", 1, choices=(1, 2, 4, 8), doc="Return the shape that decoders produce with `scale_denom`.")
    dtype = arg("dtype", DType.INT64, doc="Element type of the output.")
    max_pixels = arg("int", 0, doc="Files that declare more pixels are errors, as for decoders. 0: no limit.")
    cases = ({}, {"dtype": "int32"}, {"image_type": "GRAY"})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return image_files()

    def lower(self, c: Lowering, data: Value) -> Value:
        limit, adjust = limit_of(c, "max_pixels"), c.const("adjust_orientation")
        return c.cast(peek(c, data, c.const("image_type"), adjust, c.const("scale_denom"), limit), c.const("dtype"))

    def reference(self, row: RowContext, data: Any) -> Any:
        shape = pillow_decode(data, row["image_type"], row["adjust_orientation"], row["scale_denom"]).shape
        return np.asarray(shape, row["dtype"].numpy)
