# SPDX-License-Identifier: Apache-2.0
"""``pitch_shift``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.pixel import coordinate, lookup
from ...contract.samples import Rows
from ...contract.step import Value
from ...contract.types import DType
from ._signals import expect_floats, mono, signals
from ._transforms import FrameArguments
from .audio_resample import AudioResample
from .time_stretch import checked_rate, stretched, stretched_reference


class PitchShift(FrameArguments, name="pitch_shift"):
    """Change the pitch of a signal and keep its tempo. Input: one channel, float32 ``(n,)`` or ``(n, 1)``. Output:
    ``(n,)``.

    `time_stretch` changes the length, and `audio_resample` restores it. Source: ``librosa.effects.pitch_shift``, whose
    resampler differs.
    """

    exactness = "within float32 rounding"
    window_length = arg("int", 2048, doc="Samples of a frame.")
    window_step = arg("int", 512, doc="Samples from one frame to the next.")
    n_steps = arg("float", per_row=True, doc="Semitones, -48 to 48: 12 is an octave up.")
    quality = arg("float", 50.0, doc="Quality of resampling, 0 to 100 (`audio_resample`).")
    cases = (
        {"n_steps": 12.0, "window_length": 128, "window_step": 32},
        {"n_steps": -12.0, "window_length": 64, "window_step": 16, "quality": 10.0},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return signals(case)

    def lower(self, c: Lowering, x: Value) -> Value:
        expect_floats(c, x)
        x, steps = mono(c, x), c.scalar("n_steps")
        c.require(ex.absolute(steps) <= 48, "expected `n_steps` from -48 to 48 semitones, got {0}", steps)
        rate = checked_rate(c, ex.exp(ex.clamp(steps, -48, 48) * (-math.log(2) / 12)), "n_steps")
        y = stretched(c, x, rate)
        value = c.numbers([1 / rate], DType.FLOAT64, ())
        y = c.apply("audio_resample", y, in_rate=value, out_rate=1.0, quality=c.const("quality"))
        result: Value = c.pointwise([y], lookup(DType.FLOAT, 0, coordinate(0), y.shape[0]), x.shape, "")
        return result

    def reference(self, row: RowContext, x: Any) -> Any:
        # For ratios with many phases, `audio_resample` takes the filter of the next lower 64th. The reference takes the
        # exact one, so it is within 1e-2 of the largest value there.
        x = x.reshape(-1)
        rate = math.exp(row.number("n_steps") * (-math.log(2) / 12))
        y = stretched_reference(row, x, rate).astype(np.float32)
        args = {**dict.fromkeys(AudioResample.arguments), "in_rate": 1 / rate, "out_rate": 1.0, "filter": "exact"}
        y = AudioResample().reference(RowContext({**args, "quality": row["quality"]}), y)
        return np.pad(y, (0, max(len(x) - len(y), 0)))[: len(x)]
