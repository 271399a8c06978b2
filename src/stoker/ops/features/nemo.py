# SPDX-License-Identifier: Apache-2.0
"""``features.nemo``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.pixel import binary, load, unary, uniform
from ...contract.samples import Rows
from ...contract.step import Value
from ...contract.streaming import StreamRule, framed
from ...contract.types import DType
from ._front_end import (
    floats,
    hann,
    logarithm,
    plain_powers,
    plain_slaney,
    raised,
    rate_of,
    samples_of,
    signal_of,
    speech,
)

_GUARD, _EPSILON = 2.0**-24, 1e-5
_AXES = {"per_feature": (1,), "all_features": (0, 1)}


class Nemo(Operator, name="features.nemo"):
    """Compute the log-mel spectrogram of NVIDIA NeMo's speech models (Conformer, FastConformer, Parakeet). Input:
    float32 ``(n,)`` or ``(n, 1)``. Output: ``(features, n // step)``, layout ft.

    Pre-emphasis (the sample before the first is 0); powers of frames (a symmetric Hann window, zeros beyond the
    signal); mel filters of Slaney's form; natural logarithms of the sums plus ``2**-24``; and normalization over time:
    ``(x - mean) / (deviation + 1e-5)``, with ``N - 1`` in the deviation. These are the formulas of
    ``AudioToMelSpectrogramPreprocessor`` without dither, and the values of Hugging Face's
    ``ParakeetFeatureExtractor``, within float32 rounding. NeMo's padding to multiples of frames is `pad`.
    """

    exactness = "within float32 rounding"
    features = arg("int", 80, doc="Number of mel filters.")
    sample_rate = arg("float", 16000.0, doc="Sampling rate of the signal in Hz.")
    window_size = arg("float", 0.025, doc="Seconds of a frame.")
    window_stride = arg("float", 0.01, doc="Seconds from one frame to the next.")
    n_fft = arg("int", None, doc="Points of the transform; by default the next power of two.")
    preemph = arg("float", 0.97, doc="Coefficient of pre-emphasis; 0: none.")
    lowfreq = arg("float", 0.0, doc="Lower edge of the first filter in Hz.")
    highfreq = arg("float", 0.0, doc="Upper edge of the last filter in Hz; 0: half of `sample_rate`.")
    normalize = arg(
        "str", "per_feature", choices=("per_feature", "all_features", "none"),
        doc="Mean and deviation of each feature, of all together, or none.",
    )  # fmt: skip
    cases = (
        {},
        {"features": 64, "window_size": 0.02, "normalize": "all_features", "preemph": 0.0},
        {
            "features": 20,
            "sample_rate": 8000.0,
            "normalize": "none",
            "n_fft": 400,
            "lowfreq": 100.0,
            "highfreq": 3500.0,
        },
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return speech(case)

    def lower(self, c: Lowering, x: Value) -> Value:
        x, rate = signal_of(c, x), rate_of(c)
        length, step = samples_of(c, "window_size", rate), samples_of(c, "window_stride", rate)
        points = c.const("n_fft") or 1 << max(length - 1, 1).bit_length()
        frames = x.shape[0] // step
        c.require(frames >= 2, "expected a signal of at least two steps ({1} samples), got {0}", x.shape[0], 2 * step)
        if c.const("preemph"):
            x = c.apply("preemphasis_filter", x, preemph_coeff=c.const("preemph"), border="zero")
        x = c.apply(
            "spectrogram", x, nfft=points, window_length=length, window_step=step, reflect_padding=False,
            window_fn=floats(hann(length, periodic=False)),
        )  # fmt: skip
        x = c.apply(
            "mel_filter_bank", x, nfilter=c.const("features"), sample_rate=rate, freq_low=c.const("lowfreq"),
            freq_high=c.const("highfreq"),
        )  # fmt: skip
        x = logarithm(c, raised(c, x, _GUARD))
        x = c.slice(x, {1: (0, ex.maximum(frames, 0))})
        if c.const("normalize") == "none":
            return c.pointwise([x], load(DType.FLOAT))
        axes = _AXES[c.const("normalize")]
        mean = c.apply("reductions.mean", x, dtype="float64", axes=axes, keep_dims=True)
        variance = c.apply("reductions.variance", x, mean, ddof=1, axes=axes, keep_dims=True)
        middle = load(DType.FLOAT64, 1).cast(DType.FLOAT)
        deviation = unary("sqrt", load(DType.FLOAT, 2)) + uniform(_EPSILON)
        return c.pointwise([x, mean, variance], binary("div", load(DType.FLOAT) - middle, deviation))

    @classmethod
    def stream_rule(cls, args: Mapping[str, Any], x: Spec, axis: int) -> StreamRule:
        if args["normalize"] != "none":
            raise UnsupportedError(
                f'expected `normalize="none"`, got {args["normalize"]!r}: mean and deviation depend on the whole '
                "signal; `normalize` with a given `mean` and `stddev` can follow"
            )
        rate = args["sample_rate"]
        length, step = (math.floor(args[name] * rate + 1e-6) for name in ("window_size", "window_stride"))
        # Pre-emphasis takes one sample more. A frame exists only if all samples up to the next one do.
        rule = framed(1, length + 1, step, lambda n: n // step, before=length // 2 + 1, least=2 * step)
        return replace(rule, ready=lambda n: min(rule.ready(n), n // step))

    def reference(self, row: RowContext, x: Any) -> Any:
        wide, rate = x.reshape(-1).astype(np.float64), row["sample_rate"]
        length, step = (math.floor(row[name] * rate + 1e-6) for name in ("window_size", "window_stride"))
        points = row["n_fft"] or 1 << max(length - 1, 1).bit_length()
        wide = wide - row["preemph"] * np.concatenate([[0.0], wide[:-1]])
        window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / max(length - 1, 1))
        powers = plain_powers(wide, points, window, step, "constant")[:, : len(wide) // step]
        mel = plain_slaney(row["features"], points, rate, row["lowfreq"], row["highfreq"] or rate / 2) @ powers
        y = np.log(mel + _GUARD)
        if row["normalize"] != "none":
            axes = _AXES[row["normalize"]]
            y = (y - y.mean(axes, keepdims=True)) / (y.std(axes, ddof=1, keepdims=True) + _EPSILON)
        return y.astype(np.float32)
