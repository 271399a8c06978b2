# SPDX-License-Identifier: Apache-2.0
"""``features.kaldi_fbank``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.pixel import Px, binary, coordinate, load, lookup, select, uniform
from ...contract.samples import Rows
from ...contract.step import Value
from ...contract.streaming import StreamRule, framed
from ...contract.types import DType
from ...native import _native
from ..audio._signals import at_least, weighted_by
from ._front_end import cosines, flat, floats, hann, logarithm, signal_of, speech

_EPSILON = float(np.finfo(np.float32).eps)
_WINDOWS = ("povey", "hanning", "hamming", "blackman", "rectangular")


class KaldiFbank(Operator, name="features.kaldi_fbank"):
    """Compute Kaldi's log-mel filter bank. Input: float32 ``(n,)`` or ``(n, 1)``. Output: ``(frames, num_mel_bins)``,
    layout tf.

    From each frame its mean is subtracted, then pre-emphasis is applied within the frame, then the window. The filters
    are triangles on Kaldi's mel scale; logarithms are natural. The values are those of
    ``torchaudio.compliance.kaldi.fbank`` without dither, within float32 rounding. Kaldi's own programs take samples of
    16 bits as they are: multiply the signal by 32768 for their values.
    """

    exactness = "within float32 rounding"
    num_mel_bins = arg("int", 23, doc="Number of mel filters, at least 4.")
    sample_frequency = arg("float", 16000.0, doc="Sampling rate of the signal in Hz.")
    frame_length = arg("float", 25.0, doc="Milliseconds of a frame.")
    frame_shift = arg("float", 10.0, doc="Milliseconds from one frame to the next.")
    low_freq = arg("float", 20.0, doc="Lower edge of the first filter in Hz.")
    high_freq = arg("float", 0.0, doc="Upper edge of the last filter in Hz; up to 0: relative to half of the rate.")
    window_type = arg("str", "povey", choices=_WINDOWS, doc="Window of the frames.")
    preemphasis_coefficient = arg("float", 0.97, doc="Coefficient of pre-emphasis; 0: none.")
    remove_dc_offset = arg("bool", True, doc="Subtract the mean of each frame.")
    round_to_power_of_two = arg("bool", True, doc="Fill frames up with zeros to a power of two.")
    snip_edges = arg("bool", True, doc="Only frames within the signal; else the signal is mirrored at its ends.")
    use_log_fbank = arg("bool", True, doc="Return logarithms.")
    use_power = arg("bool", True, doc="Sum powers, else magnitudes.")
    cases = (
        {},
        {"num_mel_bins": 40, "snip_edges": False, "window_type": "hamming", "preemphasis_coefficient": 0.0},
        {
            "num_mel_bins": 20, "sample_frequency": 8000.0, "window_type": "blackman", "use_log_fbank": False,
            "remove_dc_offset": False, "round_to_power_of_two": False, "use_power": False, "high_freq": -200.0,
        },
    )  # fmt: skip

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return speech(case)

    def lower(self, c: Lowering, x: Value) -> Value:
        x, rate = signal_of(c, x), rate_of_kaldi(c)
        length, step = (_samples(c, name, rate) for name in ("frame_length", "frame_shift"))
        c.expect(length >= 2, f"expected `frame_length` of at least two samples, got {length}")
        points = 1 << (length - 1).bit_length() if c.const("round_to_power_of_two") else length + length % 2
        n, snip = x.shape[0], c.const("snip_edges")
        if snip:
            c.require(n >= length, "expected a signal of at least one frame ({1} samples), got {0}", n, length)
            frames, before = ex.maximum(n - length, 0) // step + 1, 0
        else:
            c.require(n >= length, "expected a signal of at least one frame ({1} samples), got {0}", n, length)
            frames, before = (n + step // 2) // step, length // 2 - step // 2
        x = _frames(c, x, frames, length, step, before)
        ones = floats(_window(c.const("window_type"), length))
        power = 2 if c.const("use_power") else 1
        x = c.apply(
            "spectrogram", flat(c, x), nfft=points, window_length=length, window_step=length, window_fn=ones,
            center_windows=False, layout="tf", power=power,
        )  # fmt: skip
        x = weighted_by(c, x, 1, _weights(c, points, rate))
        return logarithm(c, x, _EPSILON) if c.const("use_log_fbank") else x

    @classmethod
    def stream_rule(cls, args: Mapping[str, Any], x: Spec, axis: int) -> StreamRule:
        length, step = (int(args["sample_frequency"] * args[name] * 0.001) for name in ("frame_length", "frame_shift"))
        if args["snip_edges"]:
            return framed(0, length, step, lambda n: max(n - length, 0) // step + 1, least=length)
        before = length // 2 - step // 2
        if before < 1:
            raise UnsupportedError("expected `frame_length` longer than `frame_shift` with `snip_edges=False`")
        return framed(0, length, step, lambda n: (n + step // 2) // step, before=before, least=length)

    def reference(self, row: RowContext, x: Any) -> Any:
        wide, rate = x.reshape(-1).astype(np.float64), row["sample_frequency"]
        n, length, step = len(wide), *(int(rate * row[name] * 0.001) for name in ("frame_length", "frame_shift"))
        count, before = (n - length) // step + 1, 0
        if not row["snip_edges"]:
            count, before = (n + step // 2) // step, length // 2 - step // 2
        at = np.arange(count)[:, None] * step + np.arange(length) - before
        at = np.where(at < 0, -1 - at, at)
        frames = wide[np.where(at >= n, 2 * n - 1 - at, at)]
        if row["remove_dc_offset"]:
            frames = frames - frames.mean(1, keepdims=True)
        frames = frames - row["preemphasis_coefficient"] * np.concatenate([frames[:, :1], frames[:, :-1]], 1)
        frames = frames * _window(row["window_type"], length)
        points = 1 << (length - 1).bit_length() if row["round_to_power_of_two"] else length + length % 2
        spectrum = np.abs(np.fft.rfft(frames, points, 1)) ** (2 if row["use_power"] else 1)
        high = row["high_freq"] if row["high_freq"] > 0 else row["high_freq"] + rate / 2
        mel = 1127 * np.log1p(np.arange(points // 2 + 1) * rate / points / 700)
        low, top = (1127 * math.log1p(hz / 700) for hz in (row["low_freq"], high))
        middles = np.linspace(low, top, row["num_mel_bins"] + 2)
        weights = (1 - np.abs(mel - middles[1:-1, None]) / (middles[1] - middles[0])).clip(0)
        y = spectrum[:, :-1] @ weights[:, :-1].T
        return (np.log(np.maximum(y, _EPSILON)) if row["use_log_fbank"] else y).astype(np.float32)


def rate_of_kaldi(c: Lowering) -> float:
    """Return the sampling rate."""
    rate = float(c.const("sample_frequency"))
    c.expect(np.isfinite(rate) and 1 <= rate <= 1e7, f"expected `sample_frequency` from 1 to 1e7 Hz, got {rate:g}")
    return rate


def _samples(c: Lowering, name: str, rate: float) -> int:
    """Return the samples of an argument in milliseconds, as Kaldi counts them."""
    value = float(c.const(name))
    c.expect(bool(np.isfinite(value)) and 0 < value <= 1e5, f"expected `{name}` in milliseconds, got {value:g}")
    count = int(rate * value * 0.001)
    c.expect(1 <= count <= 1 << 20, f"expected `{name}` of 1 to {1 << 20} samples, got {count}")
    return count


def _frames(c: Lowering, x: Value, frames: Any, length: int, step: int, before: int) -> Value:
    """Return the frames ``(frames, length)``, without their means and with pre-emphasis."""
    n, coefficient = x.shape[0], float(c.const("preemphasis_coefficient"))
    c.expect(bool(np.isfinite(coefficient)), f"expected a finite `preemphasis_coefficient`, got {coefficient:g}")
    number = DType.INT32

    def sample(within: Px, port: int) -> Px:
        at = coordinate(0) * uniform(step, number) + within - uniform(before, number)
        mirrored = select(binary("lt", at, 0), uniform(-1, number) - at, at)
        last = uniform(n, number)
        at = select(binary("lt", mirrored, last), mirrored, uniform(2 * n - 1, number) - mirrored)
        return lookup(DType.FLOAT, port, at, n)

    column, shape = coordinate(1), (frames, length)
    if not c.const("remove_dc_offset"):
        means = c.constant(np.zeros((1, 1), np.float32))
    else:
        cut = c.pointwise([x], sample(column, 0), shape, "")
        means = c.apply("reductions.mean", cut, axes=(1,), keep_dims=True)
    mean = load(DType.FLOAT, 0)
    value = sample(column, 1) - mean
    if coefficient:
        previous = sample(binary("max", column - uniform(1, number), 0), 1) - mean
        value = value - previous * uniform(coefficient)
    return c.pointwise([means, x], value, shape, "")


def _window(kind: str, length: int) -> Any:
    """Return a symmetric window in double."""
    turns = 2.0 * np.arange(length) / (length - 1)
    if kind == "rectangular":
        return np.ones(length)
    if kind == "hamming":
        return 0.54 - 0.46 * cosines(turns)
    if kind == "blackman":
        return 0.42 - 0.5 * cosines(turns) + 0.08 * cosines(2 * turns)
    window = hann(length, periodic=False)
    if kind == "hanning":
        return window
    positive = np.maximum(window, 1e-300)
    return np.where(window > 0, _native.xmath("exp", 0.85 * _native.xmath("log", positive)), 0.0)


def _weights(c: Lowering, points: int, rate: float) -> Any:
    """Return triangles on Kaldi's mel scale, ``(num_mel_bins, points // 2 + 1)``; the last bin has no weight."""
    count, nyquist = at_least(c, "num_mel_bins", 4), rate / 2
    c.expect(count <= 1 << 12, f"expected `num_mel_bins` of at most {1 << 12}, got {count}")
    low, high = float(c.const("low_freq")), float(c.const("high_freq"))
    high = high + nyquist if high <= 0 else high
    c.expect(
        0 <= low < high <= nyquist,
        f"expected 0 <= `low_freq` < `high_freq` <= {nyquist:g} (half of `sample_frequency`), got {low:g} and {high:g}",
    )

    def mel(hz: Any) -> Any:
        return 1127.0 * _native.xmath("log", 1.0 + np.atleast_1d(np.asarray(hz, np.float64)) / 700.0)

    first, last = mel(low)[0], mel(high)[0]
    edges = first + (last - first) / (count + 1) * np.arange(count + 2)
    bins = mel(np.arange(points // 2) * (rate / points))
    left, middle, right = (edges[i : count + i, None] for i in range(3))
    weights = np.minimum((bins - left) / (middle - left), (right - bins) / (right - middle)).clip(0)
    return np.pad(weights, ((0, 0), (0, 1))).astype(np.float32)
