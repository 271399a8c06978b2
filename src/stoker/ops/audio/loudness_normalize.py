# SPDX-License-Identifier: Apache-2.0
"""``loudness_normalize``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.pixel import Px, binary, load, select, unary, uniform
from ...contract.step import Value
from ...contract.types import DType
from .loudness import LoudnessArguments, measured, measured_reference


class LoudnessNormalize(LoudnessArguments, name="loudness_normalize"):
    """Scale a signal to a loudness. Input: float32 ``(n,)`` or ``(n, channels)``, full scale 1, 1 to 5 channels.
    Output: the same shape.

    The factor is ``10**((target - L) / 20)``, where L is the signal's `loudness` (ITU-R BS.1770-4). EBU R 128 asks for
    -23 LUFS; streaming services use -14 to -16. A silent signal stays as it is. Samples beyond full scale are not
    limited. Source: ``pyloudnorm.normalize.loudness``.
    """

    target = arg("float", -23.0, per_row=True, doc="Loudness of the output in LUFS, from -200 to 100.")
    cases = ({}, {"sample_rate": 48000.0, "target": -14.0})

    def lower(self, c: Lowering, x: Value) -> Value:
        target = c.scalar("target")
        c.require(ex.both(target >= -200, target <= 100), "expected `target` from -200 to 100 LUFS, got {0}", target)
        found = load(DType.FLOAT64)
        audible: Px = binary("lt", unary("abs", found), math.inf)
        factor = unary("exp", (uniform(target, DType.FLOAT64) - found) * (math.log(10) / 20))
        gain = c.pointwise([measured(c, x)], select(audible, factor, uniform(1.0, DType.FLOAT64)).cast(DType.FLOAT))
        return c.pointwise([x, gain], load(DType.FLOAT) * load(DType.FLOAT, 1))

    def reference(self, row: RowContext, x: Any) -> Any:
        found = measured_reference(x, row.number("sample_rate"))
        if not math.isfinite(found):
            return x
        return (x * np.float32(10 ** ((row.number("target") - found) / 20))).astype(np.float32)
