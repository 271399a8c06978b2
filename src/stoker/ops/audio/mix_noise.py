# SPDX-License-Identifier: Apache-2.0
"""``mix_noise``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.pixel import Px, binary, coordinate, load, lookup, select, unary, uniform
from ...contract.samples import Rows
from ...contract.step import Value, ViewOp
from ...contract.types import DType
from ._signals import expect_floats, mono, signals, without_gaps

_UNIFORM = 0  # number of the distribution in native/shared/draws.hpp
_LOUDEST = 200.0  # dB


class MixNoise(Operator, name="mix_noise"):
    """Add noise to a signal at a given signal-to-noise ratio. Inputs: the signal, and the noise, each of one channel,
    float32 ``(n,)`` or ``(n, 1)``, at one sampling rate. Output: the signal with noise, of the signal's shape.

    Of longer noise a random part is taken. Shorter noise is repeated from a random sample on. The gain of the noise is
    ``sqrt(P / N) 10**(-snr / 20)``, where P and N are the mean squares of the signal and of the noise that is added, so
    that the ratio of both is exactly `snr`. If the signal or the noise is silent (all zeros), nothing is added.

    A second reader supplies the noise (MUSAN, recorded rooms). Its number of files differs from that of the signals, so
    name the reader of the signals as the pipeline's ``epoch_reader``. The draw of the part belongs to the signal's
    sample: batch size and threads do not change it.
    """

    exactness = "within float32 rounding"
    inputs = (2, 2)
    draws = 1
    snr = arg("float", per_row=True, doc="Ratio of the powers of signal and noise in dB, from -200 to 200.")
    cases = ({"snr": 10.0}, {"snr": -3.0})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        rng = np.random.default_rng(3)
        noises = [rng.normal(0, 0.2, n).astype(np.float32) for n in (2000, 450, 333)]
        return [(x, noise) for (x,), noise in zip(signals(case), noises, strict=True)]

    def lower(self, c: Lowering, x: Value, noise: Value) -> Value:
        for one in (x, noise):
            expect_floats(c, one)
        shape, layout = x.shape, x.layout
        x, noise = mono(c, x), without_gaps(c, mono(c, noise))
        n, m, snr = x.shape[0], noise.shape[0], c.scalar("snr")
        c.require(ex.both(n > 0, m > 0), "expected a signal and noise with samples, got {0} and {1} samples", n, m)
        c.require(ex.absolute(snr) <= _LOUDEST, "expected `snr` from -200 to 200 dB, got {0}", snr)
        drawn = c.native("draw", [], [(DType.FLOAT64, (1,), "")], attrs=(_UNIFORM, *c.draw), params=(0, 1))[0]
        start = ex.floor(c.element(drawn) * ex.where(m >= n, m - n + 1, m))
        at = binary("mod", coordinate(0) + uniform(start, DType.INT32), ex.maximum(m, 1))
        part = c.pointwise([noise], lookup(DType.FLOAT, 0, at, m), (n,), "")
        powers = [c.apply("reductions.mean_square", one, axes=(0,), keep_dims=True) for one in (x, part)]
        p, q = load(DType.FLOAT, 2), load(DType.FLOAT, 3)
        gain = unary("sqrt", p / q) * uniform(ex.exp(snr * (-math.log(10) / 20)))
        audible: Px = binary("and", binary("gt", p, 0.0), binary("gt", q, 0.0))
        mixed = load(DType.FLOAT, 0) + select(audible, gain * load(DType.FLOAT, 1), uniform(0.0))
        y = c.pointwise([x, part, *powers], mixed, (n,), "")
        return y if len(shape) == 1 else c.view(y, [ViewOp("insert", 1)], layout)

    def reference(self, row: RowContext, x: Any, noise: Any) -> Any:
        wide, added = x.reshape(-1).astype(np.float64), noise.reshape(-1).astype(np.float64)
        n, m = len(wide), len(added)
        start = math.floor(row.stream.uniform() * (m - n + 1 if m >= n else m))
        added = added[(start + np.arange(n)) % m]
        p, q = (wide**2).mean(), (added**2).mean()
        if p > 0 and q > 0:
            wide = wide + math.sqrt(p / q) * 10 ** (-row.number("snr") / 20) * added
        return wide.astype(np.float32).reshape(x.shape)
