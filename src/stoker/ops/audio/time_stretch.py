# SPDX-License-Identifier: Apache-2.0
"""``time_stretch``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.samples import Rows
from ...contract.step import Launches, LaunchPass, Value
from ...contract.types import DType
from ._signals import expect_floats, mono, signals
from ._transforms import PAIR, FrameArguments, Framing, PlainFrames

_SLOWEST, _FASTEST = 0.01, 100.0
_THREADS = 64  # of a GPU block, each for a bin
_ROUNDING = 1e-9  # of a quotient that is a whole number


class TimeStretch(FrameArguments, name="time_stretch"):
    """Change the tempo of a signal and keep its pitch (phase vocoder). Input: one channel, float32 ``(n,)`` or
    ``(n, 1)``. Output: ``(round(n / rate),)``.

    The spectra of frames (`stft`) are read at ``rate`` times their distance, with interpolated magnitudes, and with
    phases that advance as in the signal; `istft` joins them. Source: ``librosa.effects.time_stretch``, with its values:
    ``window_length=2048, window_step=512``, the defaults. For speech, frames of 512 samples at 16 kHz smear less.
    """

    exactness = "within float32 rounding"
    window_length = arg("int", 2048, doc="Samples of a frame.")
    window_step = arg("int", 512, doc="Samples from one frame to the next.")
    rate = arg("float", per_row=True, doc="Tempo, 0.01 to 100: 2 is twice as fast.")
    cases = (
        {"rate": 1.3, "window_length": 128, "window_step": 32},
        {"rate": 0.6, "nfft": 100, "window_length": 80, "window_step": 20},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return signals(case)

    def lower(self, c: Lowering, x: Value) -> Value:
        expect_floats(c, x)
        rate = checked_rate(c, c.scalar("rate"), "rate")
        return stretched(c, mono(c, x), rate)

    def reference(self, row: RowContext, x: Any) -> Any:
        return stretched_reference(row, x.reshape(-1), row.number("rate")).astype(np.float32)


def checked_rate(c: Lowering, rate: Scalar, name: str) -> Scalar:
    """Require a tempo."""
    fits = ex.both(ex.both(ex.isfinite(rate), rate >= _SLOWEST), rate <= _FASTEST)
    c.require(fits, f"expected `{name}` that means a tempo from {_SLOWEST} to {_FASTEST:g}, got {{0}}", rate)
    within: Scalar = ex.clamp(rate, _SLOWEST, _FASTEST)
    return within


def stretched(c: Lowering, x: Value, rate: Scalar) -> Value:
    """Return a signal at another tempo, by the scope's arguments of frames."""
    framing = Framing(c)
    spectra = framing.forward(c, x, True, False)
    frames = ex.ceil(spectra.shape[1] / rate - _ROUNDING)
    blocks = (framing.bins + _THREADS - 1) // _THREADS
    own = Launches("PhaseVocoder", {"bins": LaunchPass(blocks, _THREADS)})
    outputs = [(DType.FLOAT, (framing.bins, frames, 2), PAIR)]
    (moved,) = c.native("phase_vocoder", [spectra], outputs, params=(rate,), own=own)
    return framing.inverse(c, moved, True, ex.round_even(x.shape[0] / rate))


def stretched_reference(row: RowContext, x: Any, rate: float) -> Any:
    """Return the same in NumPy."""
    frames = PlainFrames(row)
    spectra = frames.forward(x, True, False)
    before = np.pad(spectra, ((0, 0), (0, 2)))
    times = np.arange(math.ceil(spectra.shape[1] / rate - _ROUNDING)) * rate
    angle, out = np.angle(spectra[:, 0]), []
    for time in times:
        a, b = before[:, int(time)], before[:, int(time) + 1]
        share = time % 1
        out.append(((1 - share) * np.abs(a) + share * np.abs(b)) * np.exp(1j * angle))
        angle = angle + np.angle(b) - np.angle(a)
    return frames.inverse(np.stack(out, 1), round(len(x) / rate))
