# SPDX-License-Identifier: Apache-2.0
"""``random_speed``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import ArgumentError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import binary, coordinate, load, lookup, select, uniform
from ...contract.samples import Rows
from ...contract.step import Value
from ...contract.types import DType
from ._signals import expect_floats, mono, signals, without_gaps
from .audio_resample import AudioResample

_VALUES = 3  # number of the distribution in native/shared/draws.hpp
_SLOWEST, _FASTEST, _MOST_FACTORS = 0.1, 10.0, 1000


class RandomSpeed(Operator, name="random_speed"):
    """Play a signal faster or slower by a random factor, which changes tempo and pitch. Input: one channel, float32
    ``(n,)`` or ``(n, 1)``. Output: ``(ceil(n / factor),)`` at the same sampling rate.

    One of ``factors`` is drawn for each sample. The signal is resampled with exact positions and an anti-aliasing
    filter (`audio_resample`); the factor 1 returns the signal as it is. Source: Ko et al., "Audio Augmentation for
    Speech Recognition" (2015), and ``torchaudio.transforms.SpeedPerturbation``.
    """

    exactness = "within float32 rounding"
    draws = 1
    factors = arg("float", (0.9, 1.0, 1.1), many=True, doc="Speeds to draw from, 0.1 to 10, with equal probability.")
    quality = arg("float", 50.0, doc="Quality of resampling, 0 to 100 (`audio_resample`).")
    cases = ({}, {"factors": (1.25, 0.8, 1.0), "quality": 10.0}, {"factors": 1.0})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return signals(case)

    def validate(self, args: Mapping[str, Any]) -> None:
        factors = args["factors"]
        if not 1 <= len(factors) <= _MOST_FACTORS or not all(_SLOWEST <= f <= _FASTEST for f in factors):
            raise ArgumentError(
                f"`random_speed`: expected 1 to {_MOST_FACTORS} `factors` from {_SLOWEST} to {_FASTEST:g}, got "
                f"{factors if len(factors) <= 10 else len(factors)}"
            )

    def lower(self, c: Lowering, x: Value) -> Value:
        expect_floats(c, x)
        x = without_gaps(c, mono(c, x))
        factors = c.constant(np.asarray(c.const("factors"), np.float64))
        (factor,) = c.native("draw", [factors], [(DType.FLOAT64, (), "")], attrs=(_VALUES, *c.draw))
        y = c.apply("audio_resample", x, in_rate=factor, out_rate=1.0, quality=c.const("quality"))
        same = lookup(DType.FLOAT, 1, coordinate(0), ex.minimum(x.shape[0], y.shape[0]))
        is_same = binary("eq", uniform(c.element(factor), DType.FLOAT64), 1.0)
        result: Value = c.pointwise([y, x], select(is_same, same, load(DType.FLOAT)))
        return result

    def reference(self, row: RowContext, x: Any) -> Any:
        factor = float(row["factors"][int(row.stream.uniform() * len(row["factors"]))])
        x = x.reshape(-1)
        if factor == 1:
            return x
        args = {**dict.fromkeys(AudioResample.arguments), "in_rate": factor, "out_rate": 1.0, "filter": "exact"}
        return AudioResample().reference(RowContext({**args, "quality": row["quality"]}), x)
