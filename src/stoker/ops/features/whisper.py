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
from ..audio._signals import MAX_NFFT, at_least, is_finite
from ._front_end import floats, hann, plain_powers, plain_slaney, samples_of, signal_of, speech

_RATE = 16000.0


class Whisper(Operator, name="features.whisper"):
    """Compute the log-mel spectrogram that Whisper takes. Input: float32 ``(n,)`` or ``(n, 1)`` at 16 kHz. Output:
    ``(n_mels, frames)``, layout ft, 100 frames per second.

    The signal is cut or filled up with zeros to ``chunk_length`` seconds. Powers of 25 ms every 10 ms (a periodic Hann
    window), mel filters of Slaney's form, and decimal logarithms of at least 1e-10 are raised to 8 below the largest
    one, plus 4, divided by 4. The values are those of Hugging Face's ``WhisperFeatureExtractor``, within float32
    rounding. Long recordings take ``truncation=False``, short ones without padding ``padding="do_not_pad"``.
    """

    exactness = "within float32 rounding"
    n_mels = arg("int", 80, doc="Number of mel filters: 80, or 128 for large-v3. Hugging Face: `feature_size`.")
    chunk_length = arg("float", 30.0, doc="Seconds of the output.")
    hop_length = arg("int", 160, doc="Samples from one frame to the next.")
    n_fft = arg("int", 400, doc="Samples of a frame, and points of the transform.")
    padding = arg(
        "str", "max_length", choices=("max_length", "do_not_pad"),
        doc='Fill up shorter signals ("max_length"), or return the frames of the signal alone.',
    )  # fmt: skip
    truncation = arg("bool", True, doc="Cut longer signals; else return all their frames.")
    padding_value = arg("float", 0.0, doc="Sample that fills up signals.")
    do_normalize = arg("bool", False, doc="First normalize the signal, without its padding: mean 0, variance 1.")
    cases = (
        {"chunk_length": 0.2},
        {"n_mels": 128, "chunk_length": 0.05},
        {"chunk_length": 0.12, "truncation": False, "do_normalize": True, "padding_value": 0.25},
        {"padding": "do_not_pad", "hop_length": 200, "n_fft": 512},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return speech(case)

    def lower(self, c: Lowering, x: Value) -> Value:
        x = signal_of(c, x)
        size, step, points = samples_of(c, "chunk_length", _RATE), at_least(c, "hop_length", 1), at_least(c, "n_fft", 2)
        c.expect(points <= MAX_NFFT, f"expected `n_fft` of at most {MAX_NFFT}, got {points}")
        c.expect(size >= 2 * step, f"expected `chunk_length` of at least {2 * step / _RATE:g} seconds (two steps), got "
                                   f"{size / _RATE:g}")  # fmt: skip
        filler = c.const("padding_value")
        c.expect(is_finite(filler), f"expected a finite `padding_value`, got {filler:g}")
        if c.const("truncation"):
            x = c.slice(x, {0: (0, ex.minimum(x.shape[0], size))})
        if c.const("do_normalize"):
            x = c.apply("features.wav2vec2", x)
        if c.const("padding") == "max_length":
            x = c.apply("pad", x, axes=(0,), shape=(size,), fill_value=filler)
        frames = x.shape[0] // step
        text = "expected a signal of at least one step ({1} samples), got {0}"
        c.require(frames > 0, text, x.shape[0], step)
        window = floats(hann(points, periodic=True))
        x = c.apply("spectrogram", x, window_length=points, window_step=step, window_fn=window)
        x = c.apply("mel_filter_bank", x, nfilter=c.const("n_mels"), sample_rate=_RATE)
        x = c.apply("to_decibels", x, multiplier=1.0, reference=1.0, cutoff_db=-10.0)
        x = c.slice(x, {1: (0, ex.maximum(frames, 0))})
        peak = c.apply("reductions.max", x)
        floor = load(DType.FLOAT, 1) - uniform(8.0)
        return c.pointwise([x, peak], (binary("max", load(DType.FLOAT), floor) + uniform(4.0)) * uniform(0.25))

    def reference(self, row: RowContext, x: Any) -> Any:
        size, step, points = math.floor(row["chunk_length"] * _RATE + 1e-6), row["hop_length"], row["n_fft"]
        part = x.reshape(-1).astype(np.float64)
        part = part[:size] if row["truncation"] else part
        if row["do_normalize"]:
            part = (part - part.mean()) / np.sqrt(part.var() + 1e-7)
        if row["padding"] == "max_length":
            part = np.pad(part, (0, max(size - len(part), 0)), constant_values=row["padding_value"])
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(points) / points)
        powers = plain_powers(part, points, window, step, "reflect")[:, : len(part) // step]
        mel = plain_slaney(row["n_mels"], points, _RATE, 0.0, _RATE / 2) @ powers
        log = np.log10(np.maximum(mel, 1e-10))
        return ((np.maximum(log, log.max() - 8) + 4) / 4).astype(np.float32)
