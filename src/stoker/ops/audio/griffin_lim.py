# SPDX-License-Identifier: Apache-2.0
"""``griffin_lim``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import RowContext
from ...contract.samples import Rows, each
from ...contract.step import Launches, Value
from ...contract.types import DType
from ._signals import at_least, frequency_axis, signals
from ._transforms import PAIR, FrameArguments, Framing, PlainFrames

_MOST_ITERATIONS = 1000
_TINY = 1e-16
_ELEMENTS = 1024  # of a GPU block (native/device/own_phased.cuh)


class GriffinLim(FrameArguments, name="griffin_lim"):
    """Estimate a signal from magnitudes of spectra, which lack phases. Input: float32 ``(nfft // 2 + 1, frames)``, axes
    f and t in any order, as `spectrogram` gives. Output: ``((frames - 1) * window_step,)``, for an even ``nfft``.

    Each iteration computes the signal of the spectra (`istft`), takes the phases of that signal's spectra (`stft`), and
    accelerates their change by ``momentum``. The first phases are 0. Source: Perraudin, Balazs and Sondergaard, "A fast
    Griffin-Lim algorithm" (2013); the values of ``torchaudio.functional.griffinlim(rand_init=False)``.
    """

    exactness = "within float32 rounding"
    power = arg("int", 2, choices=(1, 2), doc="Exponent of the magnitudes in the input (`spectrogram`).")
    n_iter = arg("int", 32, doc="Iterations, at most 1000.")
    momentum = arg("float", 0.99, doc="Acceleration from 0 (the method of Griffin and Lim) to below 1.")
    cases = (
        {"window_length": 64, "window_step": 16, "n_iter": 3},
        {"nfft": 100, "window_length": 80, "window_step": 20, "n_iter": 2, "momentum": 0.0, "power": 1},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        row = RowContext({"nfft": None, "window_fn": None, **case})
        power = case.get("power", 2)
        return each(*((np.abs(PlainFrames(row).forward(x)) ** power).astype(np.float32) for (x,) in signals(case)))

    def lower(self, c: Lowering, x: Value) -> Value:
        c.expect(
            x.dtype == DType.FLOAT and x.rank == 2, f"expected float32 with two axes, got {x.dtype} with {x.rank} axes"
        )
        if frequency_axis(c, x) == 1:
            x = c.permute(x, (1, 0))
        framing, count = Framing(c), at_least(c, "n_iter", 0)
        c.expect(count <= _MOST_ITERATIONS, f"expected `n_iter` of at most {_MOST_ITERATIONS}, got {count}")
        momentum = float(c.const("momentum"))
        c.expect(0 <= momentum < 1, f"expected `momentum` from 0 to below 1, got {momentum:g}")
        c.require(
            ex.equal(x.shape[0], framing.bins), "expected {1} bins (`nfft` // 2 + 1), got {0}", x.shape[0], framing.bins
        )
        frames = x.shape[1]
        c.require(frames > 0, "expected frames, got none")
        root, length = c.const("power") == 2, framing.whole_length(frames, True)
        outputs = [(DType.FLOAT, (framing.bins, frames, 2), PAIR)]
        own = Launches("Phased", {"apply": (framing.bins * frames + _ELEMENTS - 1) // _ELEMENTS})

        def phased(rebuilt: Value, before: Value, share: float, zero: bool) -> Value:
            numbers = (share, zero, root)
            params = tuple(map(float, numbers))
            return c.native("phased", [x, rebuilt, before], outputs, attrs=numbers, params=params, own=own)[0]

        spectra = phased(x, x, 0.0, True)
        before: Value | None = None
        for _ in range(count):
            rebuilt = framing.forward(c, framing.inverse(c, spectra, True, length), True, True)
            share = 0.0 if before is None else momentum / (1 + momentum)
            spectra = phased(rebuilt, before or rebuilt, share, False)
            before = rebuilt
        return framing.inverse(c, spectra, True, length)

    def reference(self, row: RowContext, x: Any) -> Any:
        frames = PlainFrames(row)
        magnitude = (x.T if row.layout.startswith("t") else x).astype(np.float64) ** (1 / row["power"])
        share = row["momentum"] / (1 + row["momentum"])
        phases, before = np.ones_like(magnitude, complex), np.zeros_like(magnitude, complex)
        for _ in range(row["n_iter"]):
            rebuilt = frames.forward(frames.inverse(magnitude * phases))
            phases = rebuilt - share * before
            phases, before = phases / (np.abs(phases) + _TINY), rebuilt
        return frames.inverse(magnitude * phases).astype(np.float32)
