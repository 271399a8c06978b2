# SPDX-License-Identifier: Apache-2.0
"""``features.whisper``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import binary, load, uniform
from ...contract.samples import Rows
from ...contract.step import Value
from ...contract.types import DType
from ._front_end import (
    floats,
    hann,
    plain_powers,
    plain_slaney,
    samples_of,
    signal_of,
    speech,
)

_RATE, _POINTS, _STEP = 16000.0, 400, 160


class Whisper(Operator, name="features.whisper"):
    """Compute the log-mel spectrogram that Whisper takes. Input: float32 ``(n,)`` or ``(n, 1)`` at 16 kHz. Output:
    ``(n_mels, frames)``, layout ft, 100 frames per second.

    The signal is cut or filled up with zeros to ``chunk_length`` seconds. Powers of 25 ms every 10 ms (a periodic Hann
    window), mel filters of Slaney's form, and decimal logarithms of at least 1e-10 are raised to 8 below the largest
    one, plus 4, divided by 4. The values are those of Hugging Face's ``WhisperFeatureExtractor``, within float32
    rounding.
    """

    exactness = "within float32 rounding"
    n_mels = arg("int", 80, doc="Number of mel filters: 80, or 128 for large-v3.")
    chunk_length = arg("float", 30.0, doc="Seconds of the output.")
    cases = ({"chunk_length": 0.2}, {"n_mels": 128, "chunk_length": 0.05})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return speech(case)

    def lower(self, c: Lowering, x: Value) -> Value:
        x = signal_of(c, x)
        size = samples_of(c, "chunk_length", _RATE)
        c.expect(size >= 2 * _STEP, f"expected `chunk_length` of at least 0.02 seconds, got {size / _RATE:g}")
        x = c.slice(x, {0: (0, ex.minimum(x.shape[0], size))})
        x = c.apply("pad", x, axes=(0,), shape=(size,))
        window = floats(hann(_POINTS, periodic=True))
        x = c.apply("spectrogram", x, window_length=_POINTS, window_step=_STEP, window_fn=window)
        x = c.apply("mel_filter_bank", x, nfilter=c.const("n_mels"), sample_rate=_RATE)
        x = c.apply("to_decibels", x, multiplier=1.0, reference=1.0, cutoff_db=-10.0)
        x = c.slice(x, {1: (0, size // _STEP)})
        peak = c.apply("reductions.max", x)
        floor = load(DType.FLOAT, 1) - uniform(8.0)
        return c.pointwise([x, peak], (binary("max", load(DType.FLOAT), floor) + uniform(4.0)) * uniform(0.25))

    def reference(self, row: RowContext, x: Any) -> Any:
        size = math.floor(row["chunk_length"] * _RATE + 1e-6)
        whole = np.zeros(size)
        part = x.reshape(-1)[:size]
        whole[: len(part)] = part
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_POINTS) / _POINTS)
        powers = plain_powers(whole, _POINTS, window, _STEP, "reflect")[:, : size // _STEP]
        mel = plain_slaney(row["n_mels"], _POINTS, _RATE, 0.0, _RATE / 2) @ powers
        log = np.log10(np.maximum(mel, 1e-10))
        return ((np.maximum(log, log.max() - 8) + 4) / 4).astype(np.float32)
