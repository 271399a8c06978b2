# SPDX-License-Identifier: Apache-2.0
"""``loudness``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.samples import Rows, each
from ...contract.step import Launches, LaunchPass, Value
from ...contract.types import DType
from ._signals import expect_floats

_RATES = (4000.0, 1e7)  # native/kernels/loudness.cpp
_HOP, _HOPS = 0.1, 4  # seconds of a hop, and hops of a segment (native/shared/loudness.hpp)
_THREADS = 64  # of a GPU block, each for a segment
_WEIGHTS = (1.0, 1.0, 1.0, 1.41, 1.41)


class LoudnessArguments(Operator):
    """Arguments of operators that measure loudness."""

    exactness = "within float32 rounding"
    sample_rate = arg("float", 16000.0, per_row=True, doc="Sampling rate of the signal in Hz, 4000 to 1e7.")

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        rng = np.random.default_rng(5)
        rate = int(case.get("sample_rate", 16000))
        rows = []
        for seconds, channels in ((2.05, 1), (1.0, 2), (0.3, 1)):
            n = int(seconds * rate)
            level = 0.05 + 0.4 * (np.arange(n) > n // 2)
            x = rng.normal(0, 1, (n, channels)) * level[:, None]
            rows.append(x.astype(np.float32))
        return each(*rows)


class Loudness(LoudnessArguments, name="loudness"):
    """Measure the integrated loudness of a signal in LUFS. Input: float32 ``(n,)`` or ``(n, channels)``, full scale 1,
    1 to 5 channels (left, right, centre, and two surround channels, which weigh 1.41). Output: float32 without axes.

    The signal passes the two filters of ITU-R BS.1770-4, whose analog form defines them at any rate. The mean power of
    blocks of 400 ms, one every 100 ms, is taken of blocks above -70 LUFS, and then of blocks less than 10 LU below
    their mean. A signal of less than 400 ms is one block. A silent one has -inf. Source: ITU-R BS.1770-4, EBU R 128;
    the values of ``pyloudnorm.Meter(rate, filter_class="DeMan")``.
    """

    cases = ({}, {"sample_rate": 48000.0})

    def lower(self, c: Lowering, x: Value) -> Value:
        return c.cast(measured(c, x), DType.FLOAT)

    def reference(self, row: RowContext, x: Any) -> Any:
        return np.float32(measured_reference(x, row.number("sample_rate")))


def measured(c: Lowering, x: Value) -> Value:
    """Return the loudness, float64."""
    expect_floats(c, x)
    c.expect(x.rank in (1, 2), f"expected a signal with one axis (and one for channels), got {x.rank} axes")
    if x.rank == 2:
        channels = x.shape[1]
        text = "expected 1 to 5 channels (left, right, centre, and two of surround), got {0}"
        c.require(ex.both(channels >= 1, channels <= 5), text, channels)
    rate: Scalar = c.scalar("sample_rate")
    low, high = _RATES
    c.require(
        ex.both(rate >= low, rate <= high), f"expected `sample_rate` from {low:g} to {high:g} Hz, got {{0}}", rate
    )
    n, channels, hop = x.shape[0], math.prod(x.shape[1:]), _HOP * ex.maximum(rate, low)
    hops = ex.maximum(ex.floor(n / hop), _HOPS) + 1  # at least those of native/shared/loudness.hpp
    segments = LaunchPass((channels * ((hops + _HOPS - 1) // _HOPS) + _THREADS - 1) // _THREADS, _THREADS)
    own = Launches("Loudness", {"segments": segments, "mean": 1}, 8 * hops * (channels + 2))
    return c.native("loudness", [x], [(DType.FLOAT64, (), "")], params=(rate,), own=own)[0]


def measured_reference(x: Any, rate: float) -> float:
    """Return the loudness in NumPy."""
    x = x.reshape(len(x), -1).astype(np.float64)
    k = math.tan(math.pi * 1681.974450955533 / rate)
    high = 10 ** (3.999843853973347 / 20)
    band, q = high**0.4996667741545416, 0.7071752369554196
    shelf = [[high + band * k / q + k * k, 2 * (k * k - high), high - band * k / q + k * k],
             [1 + k / q + k * k, 2 * (k * k - 1), 1 - k / q + k * k]]  # fmt: skip
    k, q = math.tan(math.pi * 38.13547087602444 / rate), 0.5003270373238773
    a0 = 1 + k / q + k * k
    through = _filtered(_filtered(x, *shelf), [a0, -2 * a0, a0], [a0, 2 * (k * k - 1), 1 - k / q + k * k])
    squares = (through**2) @ np.asarray(_WEIGHTS[: x.shape[1]])
    size, n = 0.4 * rate, len(x)
    count = 1 if n < size else math.floor((n - size) / (0.1 * rate) + 1e-9) + 1
    edges = [min(int(0.1 * hop * rate), n) for hop in range(count + 4)]
    sums = [squares[edges[j] : edges[j + 4]].sum() for j in range(count)]
    powers = np.array(sums) / min(size, n) if n else np.zeros(1)

    def lufs(power: Any) -> Any:
        with np.errstate(divide="ignore"):
            return -0.691 + 10 * np.log10(power)

    kept = powers[lufs(powers) > -70]
    if not len(kept):
        return -math.inf
    kept = kept[lufs(kept) > max(float(lufs(kept.mean())) - 10, -70)]
    return float(lufs(kept.mean()))


def _filtered(x: Any, b: Any, a: Any) -> Any:
    """Return the output of a filter of second order, along the first axis."""
    y = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(min(i, 2) + 1):
            y[i] += b[j] * x[i - j] - (a[j] * y[i - j] if j else 0)
        y[i] /= a[0]
    return y
