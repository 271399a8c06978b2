# SPDX-License-Identifier: Apache-2.0
"""``elastic``."""

from __future__ import annotations

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.step import Value
from ...contract.types import InterpType
from ._map import MapArguments, interpolation


class Elastic(MapArguments, name="elastic"):
    """Deform images by a smooth random field. Input: images of up to 32 bits an element, HW, HWC, CHW or these with a
    leading F. Output: the same.

    Each pixel has two numbers, drawn evenly from -1 to 1 and blurred by ``sigma`` (`gaussian_blur`). Times ``alpha``
    they are the source's distance from the pixel. All channels and frames have the same field. A draw depends on the
    seed, the epoch, the sample and the pixel's place. Source: Simard, Steinkraus and Platt, "Best practices for
    convolutional neural networks" (2003).
    """

    draws = 1
    alpha = arg("float", 50.0, per_row=True, doc="Strength: the factor of the blurred numbers, in pixels.")
    sigma = arg("float", 5.0, per_row=True, doc="Standard deviation of the blur in pixels, above 0.")
    interp_type = interpolation(InterpType.INTERP_LINEAR)
    cases = (
        {"alpha": 9.0, "sigma": 1.5},
        {"alpha": 30.0, "sigma": 2.0, "interp_type": "INTERP_NN", "fill_value": 9.0},
        {"alpha": 20.0, "sigma": 2.0, "interp_type": "INTERP_CUBIC", "fill_value": 30.0},
    )

    def compose(self, c: Lowering, x: Value) -> Value:
        fields = c.apply("_displacements", x)
        down, across = (c.apply("gaussian_blur", field, sigma=c.pass_on("sigma")) for field in fields)
        settings = {name: c.const(name) for name in ("interp_type", "fill_value")}
        out: Value = c.apply("_displaced", x, down, across, alpha=c.pass_on("alpha"), **settings)
        return out
