# SPDX-License-Identifier: Apache-2.0
"""``noise.gaussian``."""

from __future__ import annotations

from typing import Any

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import load, uniform
from ...contract.step import Value
from ...contract.types import DType
from ..generic.cast import cast_array
from ..random._elements import ElementDraws, ElementDrawsReference
from ._color import finite, working_type


class NoiseGaussian(Operator, name="noise.gaussian"):
    """Add noise from the normal distribution to every element. Input: numbers of any shape. Output: the same type and
    shape.

    Each element has its own draw, also each channel. A draw depends on the seed, the epoch, the sample and the
    element's place, so that batches, threads and devices change nothing. Sums are float32's, float64's for elements of
    32 bits and more; integers are rounded half to even and saturate. DALI's CPU form rounds halves away from zero.

    Source of the numbers: Box and Muller's method in float32, from 24 random bits each. So no draw is further than 5.77
    standard deviations from the mean.
    """

    gives_bfloat16 = takes_bfloat16 = True
    draws = 1
    exactness = "the same bits on every machine; the reference draws in float64, so that a draw may differ by 1e-6"
    mean = arg("float", 0.0, per_row=True, doc="Mean of the noise.")
    stddev = arg("float", 1.0, per_row=True, doc="Standard deviation of the noise, at least 0.")
    cases = ({"stddev": 20.0}, {"mean": 10.0, "stddev": 3.0})

    def lower(self, c: Lowering, x: Value) -> Value:
        c.expect(x.dtype != DType.BOOL, "expected numbers, got bool")
        mean, stddev = finite(c, "mean", "stddev")
        c.require(stddev >= 0, "expected a `stddev` of at least 0, got {0}", stddev)
        noise = ElementDraws(c, x.shape, 1).normal(0) * uniform(stddev) + uniform(mean)
        wide = working_type(x.dtype)
        return c.pointwise([x], (load(x.dtype).cast(wide) + noise.cast(wide)).cast(x.dtype))

    def reference(self, row: RowContext, x: Any) -> Any:
        own = DType.of(x.dtype)
        wide = working_type(own).numpy.type
        mean, stddev = (DType.FLOAT.numpy.type(row.number(name)) for name in ("mean", "stddev"))
        noise = ElementDrawsReference(row, x.shape, 1).normal(0) * stddev + mean
        return cast_array(x.astype(wide) + noise.astype(wide), own)
