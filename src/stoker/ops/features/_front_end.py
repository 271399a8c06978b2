# SPDX-License-Identifier: Apache-2.0
"""Shared code of the front ends of speech models: signals, windows, logarithms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract.lowering import Lowering
from ...contract.pixel import load, uniform
from ...contract.samples import Rows, each
from ...contract.step import Value, ViewOp
from ...contract.types import DType
from ...native import _native
from ..audio._signals import is_finite, mono

_LOG_OF_10 = 2.302585092994046


def speech(case: Mapping[str, Any]) -> Rows:
    """Return clips of different lengths, with tones and noise."""
    rows = []
    for i, size in enumerate((2500, 4001, 1777)):
        t, rng = np.arange(size), np.random.default_rng(i)
        rows.append((0.2 * np.sin(t * (0.05 + 0.1 * i)) + rng.normal(0, 0.02, size)).astype(np.float32))
    return each(*rows)


def signal_of(c: Lowering, x: Value) -> Value:
    """Return the input as float32 with one axis. Other number types are refused: their full scale is not known."""
    c.expect(
        x.dtype == DType.FLOAT,
        f"expected float32 with full scale 1, as `decoders.audio` gives, got {x.dtype}",
    )
    return mono(c, x)


def samples_of(c: Lowering, name: str, rate: float) -> int:
    """Return the number of samples of an argument in seconds."""
    seconds = float(c.const(name))
    c.expect(is_finite(seconds) and 0 < seconds <= 3600, f"expected `{name}` in seconds up to 3600, got {seconds:g}")
    count = math.floor(seconds * rate + 1e-6)
    c.expect(count >= 1, f"expected `{name}` of at least one sample, got {seconds:g} seconds at {rate:g} Hz")
    return count


def rate_of(c: Lowering) -> float:
    """Return the argument `sample_rate`."""
    rate = float(c.const("sample_rate"))
    c.expect(is_finite(rate) and 1 <= rate <= 1e7, f"expected `sample_rate` from 1 to 1e7 Hz, got {rate:g}")
    return rate


def hann(length: int, periodic: bool) -> Any:
    """Return a Hann window in double, with equal values on every machine."""
    period = length if periodic else max(length - 1, 1)
    return 0.5 - 0.5 * cosines(2.0 * np.arange(length) / period)


def cosines(turns: Any) -> Any:
    """Return ``cos(pi x)``."""
    return _native.xmath("cos_pi", np.ascontiguousarray(turns, np.float64))


def floats(window: Any) -> tuple[float, ...]:
    """Return a window as the argument of `spectrogram`."""
    return tuple(np.asarray(window, np.float32).tolist())


def logarithm(c: Lowering, x: Value, least: float = 0.0) -> Value:
    """Return the natural logarithm of values, which are first raised to ``least``."""
    cutoff = _LOG_OF_10 * max(math.log10(least) if least else -100.0, -100.0)
    y: Value = c.apply("to_decibels", x, multiplier=_LOG_OF_10, reference=1.0, cutoff_db=cutoff)
    return y


def raised(c: Lowering, x: Value, number: float) -> Value:
    """Return the values plus a number."""
    return c.pointwise([x], load(x.dtype) + uniform(number))


def flat(c: Lowering, x: Value) -> Value:
    """Return a matrix as one sequence."""
    return c.view(x, [ViewOp("reshape", list=(x.shape[0] * x.shape[1],))], "")


def plain_powers(x: Any, points: int, window: Any, step: int, mode: str) -> Any:
    """Return powers of centred frames ``(bins, frames)`` in NumPy, for references."""
    begin, before = (points - len(window)) // 2, len(window) // 2
    wide = np.pad(window, (begin, points - len(window) - begin))
    after = max((len(x) // step) * step + points - len(x), 0)
    padded = np.pad(x, (before + begin, after), mode=mode)  # type: ignore[call-overload]
    cut = np.stack([padded[t : t + points] for t in range(0, len(x) + 1, step)]) * wide
    return (np.abs(np.fft.rfft(cut, axis=1)) ** 2).T


def plain_slaney(filters: int, points: int, rate: float, low: float, high: float) -> Any:
    """Return mel filters of Slaney's form in NumPy, for references."""
    ends = [hz * 3 / 200 if hz < 1000 else 15 + 27 * math.log(hz / 1000) / math.log(6.4) for hz in (low, high)]
    mel = np.linspace(ends[0], ends[1], filters + 2)
    edges = np.where(mel < 15, mel * 200 / 3, 1000 * 6.4 ** ((mel - 15) / 27))
    hz = np.linspace(0, rate / 2, points // 2 + 1)
    rise = (hz - edges[:-2, None]) / np.diff(edges)[:-1, None]
    fall = (edges[2:, None] - hz) / np.diff(edges)[1:, None]
    return np.minimum(rise, fall).clip(0) * (2 / (edges[2:] - edges[:-2]))[:, None]
