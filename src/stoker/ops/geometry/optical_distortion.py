# SPDX-License-Identifier: Apache-2.0
"""``optical_distortion``."""

from __future__ import annotations

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.step import Value
from ...contract.types import InterpType
from ._map import MapArguments, interpolation


class OpticalDistortion(MapArguments, name="optical_distortion"):
    """Distort images by a random lens: `lens_distortion` with a number from ``limit`` as the first two numbers of
    ``radial``. Input: images of up to 32 bits an element, HW, HWC, CHW or these with a leading F. Output: the same.
    """

    draws = 1
    limit = arg("float", (-0.05, 0.05), many=True, per_row=True, doc="Range of the number.")
    interp_type = interpolation(InterpType.INTERP_LINEAR)
    cases = ({}, {"limit": (-0.8, 0.8), "fill_value": 9.0, "interp_type": "INTERP_NN"}, {"interp_type": "INTERP_CUBIC"})

    def compose(self, c: Lowering, x: Value) -> Value:
        number = c.apply("random.uniform", range=c.pass_on("limit"))
        both = c.apply("stack", number, number)
        settings = {name: c.const(name) for name in ("interp_type", "fill_value")}
        out: Value = c.apply("lens_distortion", x, radial=both, **settings)
        return out
