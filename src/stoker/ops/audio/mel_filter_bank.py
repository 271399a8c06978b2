# SPDX-License-Identifier: Apache-2.0
"""``mel_filter_bank``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.samples import Rows
from ...contract.step import Value
from ...contract.streaming import StreamRule
from ._signals import across_time, along_axis, at_least, expect_floats, frequency_axis, is_finite, spectra, weighted


class MelFilterBank(Operator, name="mel_filter_bank"):
    """Sum the bins of a spectrum over triangular filters, spaced evenly on the mel scale. Input: float32 with an axis f
    of ``nfft // 2 + 1`` bins (without names, the last axis but one). Output: the same with ``nfilter`` bins.

    The edges of the filters are evenly spaced in mel, their sides are straight in Hz. Sums are in float32, in ascending
    order of bins; both layouts give the same bits. ``mel_formula="slaney"`` with ``normalize`` gives librosa's filters,
    "htk" without it torchaudio's.
    """

    exactness = "within float32 rounding"
    nfilter = arg("int", 128, doc="Number of filters.")
    sample_rate = arg("float", 44100.0, doc="Sampling rate of the signal in Hz. It is not taken from the file.")
    freq_low = arg("float", 0.0, doc="Lower edge of the first filter in Hz.")
    freq_high = arg(
        "float", 0.0, doc="Upper edge of the last filter in Hz; 0: half of `sample_rate`, the largest value."
    )
    normalize = arg("bool", True, doc="Divide each filter by half its width in Hz, so that all have one area.")
    mel_formula = arg(
        "str", "slaney", choices=("slaney", "htk"), doc='Mel scale: "slaney" (linear to 1 kHz), or "htk" (logarithmic).'
    )  # fmt: skip
    cases = (
        {"nfilter": 12, "sample_rate": 8000.0},
        {"nfilter": 7, "sample_rate": 16000.0, "freq_low": 100.0, "freq_high": 7000.0, "mel_formula": "htk"},
        {"nfilter": 20, "sample_rate": 4000.0, "normalize": False},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return spectra(case)

    def lower(self, c: Lowering, x: Value) -> Value:
        expect_floats(c, x)
        axis = frequency_axis(c, x)
        rows = at_least(c, "nfilter", 1)
        c.expect(rows <= 1 << 16, f"expected `nfilter` of at most 65536, got {rows}")
        rate, low = float(c.const("sample_rate")), float(c.const("freq_low"))
        high = float(c.const("freq_high")) or rate / 2
        c.expect(is_finite(rate) and rate > 0, f"expected a positive `sample_rate`, got {rate:g}")
        c.expect(
            0 <= low < high <= rate / 2,
            f"expected 0 <= `freq_low` < `freq_high` <= {rate / 2:g} (half of `sample_rate`), got {low:g} and {high:g}",
        )
        c.require(x.shape[axis] > 1, "expected at least two bins along the axis, got {0}", x.shape[axis])
        constants = (rows, rate, low, high, c.const("mel_formula") == "htk", c.const("normalize"))
        return along_axis(c, x, axis, "mel_weights", rows, constants)

    @classmethod
    def stream_rule(cls, args: Mapping[str, Any], x: Spec, axis: int) -> StreamRule:
        return across_time(x.layout.index("f") if "f" in x.layout else max(len(x.shape) - 2, 0), axis)

    def reference(self, row: RowContext, x: Any) -> Any:
        axis = row.layout.index("f") if row.layout else max(x.ndim - 2, 0)
        return weighted(x, mel_weights(row, x.shape[axis]), axis)


def mel_weights(row: RowContext, bins: int) -> Any:
    """Return the weights of all filters, ``(nfilter, bins)``, in double."""
    rate, htk = row["sample_rate"], row["mel_formula"] == "htk"
    high = row["freq_high"] or rate / 2
    edges = _hz(np.linspace(_mel(row["freq_low"], htk), _mel(high, htk), row["nfilter"] + 2), htk)
    hz = np.linspace(0, rate / 2, bins)
    left, middle, right = (edges[i : len(edges) - 2 + i, None] for i in range(3))
    weights = np.minimum((hz - left) / (middle - left), (right - hz) / (right - middle)).clip(0)
    return weights * (2 / (right - left)) if row["normalize"] else weights


def _mel(hz: float, htk: bool) -> float:
    if htk:
        return 1127 * math.log1p(hz / 700)
    return hz * 3 / 200 if hz < 1000 else 15 + 27 * math.log(hz / 1000) / math.log(6.4)


def _hz(mel: Any, htk: bool) -> Any:
    if htk:
        return 700 * np.expm1(mel / 1127)
    return np.where(mel < 15, mel * 200 / 3, 1000 * np.exp((mel - 15) * math.log(6.4) / 27))
