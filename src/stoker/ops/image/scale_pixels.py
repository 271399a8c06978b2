# SPDX-License-Identifier: Apache-2.0
"""``_scale_pixels``: the image decoders' conversion to ``dtype``."""

from __future__ import annotations

from typing import Any

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Value
from ._decoding import scaled
from .decode import scale_reference


class ScalePixels(Operator, name="_scale_pixels"):
    """Convert uint8 pixels to another type: floats in [0, 1], wider integers over their full range."""

    hidden = True
    gives_bfloat16 = True
    dtype = arg("dtype", doc="Element type of the output.")
    cases = ({"dtype": "float32"}, {"dtype": "uint16"}, {"dtype": "bfloat16"})

    def lower(self, c: Lowering, x: Value) -> Value:
        return scaled(c, x)

    def reference(self, row: RowContext, x: Any) -> Any:
        return scale_reference(x, row["dtype"])
