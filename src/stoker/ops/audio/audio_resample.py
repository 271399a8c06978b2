# SPDX-License-Identifier: Apache-2.0
"""``audio_resample``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.expr import Scalar, is_static
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.pixel import load
from ...contract.samples import Rows
from ...contract.step import ALIASES, Launches, LaunchPass, Value
from ...contract.streaming import StreamRule
from ...contract.types import DType
from ..generic.cast import cast_array
from ._signals import signals

MEANINGS = ("exact", "dali")
_LEAST = 1e-9  # of a rate
_MOST = 4096  # ratio of two rates (native/kernels/audio_resample.cpp)
_PARTIAL_SUMS = 16  # native/shared/phases.hpp
_LARGEST_TERM = 1 << 31  # native/signal/resampler.hpp
_THREADS = 256  # outputs of a GPU block (native/device/own_audioresample.cuh)
_MOST_WEIGHTS = (
    1 << 21
)  # of tiles; with more than twice as many, filters are interpolated (native/signal/resampler.cpp)
_TILES = ((64, 32), (32, 32), (64, 16), (32, 16), (16, 16), (8, 16))  # phases and periods of a block
_TILE_PHASES = 4  # of a warp
_TILE_ROOM = 47 << 10  # bytes of shared memory
_LONG_PERIOD = 128  # outputs of several short periods together
_LEAST_PERIODS = 6  # of a row; a warp computes 16
_RESIDENT = 1024  # threads
_FILTER, _VALUES, _WEIGHT_BYTES = 10, 1024, 12  # native/device/own_resamplerow.cuh
_NUMBERS = (DType.FLOAT, DType.INT8, DType.INT16, DType.INT32)


class AudioResample(Operator, name="audio_resample"):
    """Convert a signal to another sampling rate. Input: ``(n,)`` or ``(n, channels)``, float32 or signed integers,
    whose full scale is 1. Output: ``ceil(n * out_rate / in_rate)`` samples.

    Output o is the signal at input ``o * in_rate / out_rate``, a fraction of whole numbers without rounding. The
    filter is a windowed sinc (Kaiser) that removes what a lower rate cannot hold, by ``40 + 0.8 quality`` dB from
    half of the lower rate on. A higher ``quality`` also passes more: up to 0.69 of half of the lower rate for 50,
    0.82 for 75, and 0.88 for 100. Beyond its ends the signal is 0. Ratios with many phases interpolate between 2048
    filters. All machines give the same bits.

    DALI has no anti-aliasing filter: a 9 kHz tone comes back at full level as 7 kHz if 44.1 kHz become 16 kHz.
    ``stoker.dali`` keeps this meaning (``filter="dali"``), within 1e-3.
    """

    exactness = "within float32 rounding"
    in_rate = arg("float", None, per_row=True, doc="Sampling rate of the input, with `out_rate`.")
    out_rate = arg("float", None, per_row=True, doc="Sampling rate of the output.")
    scale = arg("float", None, per_row=True, doc="Samples of the output per sample of the input, in place of rates.")
    out_length = arg("int", None, per_row=True, doc="Samples of the output, in place of rates.")
    quality = arg("float", 50.0, doc="0 (fast, 3 lobes of the sinc) to 100 (64 lobes); 50: 16 lobes, 75: 36.")
    dtype = arg("dtype", None, doc="Element type of the output, float32 or a signed integer; by default the input's.")
    filter = arg("str", "exact", choices=MEANINGS, doc='"exact", or "dali": DALI\'s filter, with its aliasing.')
    cases = (
        {"in_rate": 44100.0, "out_rate": 16000.0},
        {"in_rate": 3.0, "out_rate": 4.0, "quality": 10.0, "dtype": "int16"},
        {"scale": 0.9, "quality": 0.0},
        {"out_length": 400, "filter": "dali"},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return signals(case)

    def lower(self, c: Lowering, x: Value) -> Value:
        c.expect(x.rank in (1, 2), f"expected a signal with one axis (and one for channels), got {x.rank} axes")
        dtype = x.dtype if c.const("dtype") is None else c.const("dtype")
        for kind in (x.dtype, dtype):
            if kind not in _NUMBERS:
                raise UnsupportedError(f"`audio_resample`: expected float32, int8, int16 or int32, got {kind}")
        quality = c.const("quality")
        c.expect(0 <= quality <= 100, f"expected `quality` from 0 to 100, got {quality:g}")
        if x.dtype != DType.FLOAT:
            x = c.pointwise([x], load(x.dtype).cast(DType.FLOAT) * (1 / x.dtype.positive_range))
        up, down, length = self._rates(c, x.shape[0])
        text = "expected rates with a ratio from 1/4096 to 4096, got {0} for {1}"
        c.require(ex.both(up * _MOST >= down, up <= down * _MOST), text, up, down)
        shape = (length, *x.shape[1:])
        attrs, given = (quality, c.const("filter") == "dali"), _whole(up, down)
        if given is None:
            y = _by_row(c, x, shape, (up, down), attrs)
        else:
            weights = c.opaque(DType.FLOAT, 2)
            c.emit("resample_weights", [], [weights], attrs=(*map(float, given), *attrs), memory=ALIASES)
            own, numbers = _launches(shape, given, attrs)
            y = c.native("audio_resample", [x, weights], [(DType.FLOAT, shape, x.layout)],
                         params=(*given, *numbers), attrs=(*attrs, True), own=own)[0]  # fmt: skip
        if dtype == DType.FLOAT:
            return y
        wide = DType.FLOAT64 if dtype.size > 2 else DType.FLOAT
        return c.pointwise([y], (load(DType.FLOAT).cast(wide) * float(dtype.positive_range)).cast(dtype))

    def _rates(self, c: Lowering, n: Scalar) -> tuple[Scalar, Scalar, Scalar]:
        """Return the rates of output and input, and the samples of the output."""
        given = [name for name in ("in_rate", "out_rate", "scale", "out_length") if c.given(name)]
        c.expect(
            given in (["in_rate", "out_rate"], ["scale"], ["out_length"]),
            f"expected `in_rate` and `out_rate`, or `scale`, or `out_length`, got {', '.join(given) or 'none of them'}",
        )
        for name in given:
            value, least = c.scalar(name), 0 if name == "out_length" else _LEAST
            c.require(ex.both(ex.isfinite(value), value >= least), f"expected a positive `{name}`, got {{0}}", value)
        if given == ["out_length"]:
            length = c.scalar("out_length")
            some = ex.both(length > 0, n > 0)
            return ex.where(some, length, 1), ex.where(some, n, 1), length
        up, down = (c.scalar("scale"), 1.0) if given == ["scale"] else (c.scalar("out_rate"), c.scalar("in_rate"))
        fits = ex.both(up * _MOST >= down, up <= down * _MOST)  # else a check fails, after the extents are computed
        return up, down, ex.where(fits, ex.ceil(n * up / ex.maximum(down, _LEAST)), 0)

    @classmethod
    def stream_rule(cls, args: Mapping[str, Any], x: Spec, axis: int) -> StreamRule:
        rates = [args["out_rate"], args["in_rate"]]
        if any(rate is None or rate != round(rate) or rate < 1 for rate in rates):
            raise UnsupportedError("expected `in_rate` and `out_rate` in whole Hz, whose ratio has an exact period")
        ratio = Fraction(round(rates[0]), round(rates[1]))
        up, down = ratio.numerator, ratio.denominator
        half = _shape(args["quality"], ratio, args["filter"] == "dali")[2]
        reach = 2 * math.ceil(half) + _PARTIAL_SUMS  # filters of many phases may be those of a ratio down to the half

        def ready(n: int) -> int:
            return max(-(-(n - reach) * up // down), 0)

        def start(o: int, last: bool) -> tuple[int, int]:
            periods = max(o * down // up - reach, 0) // down  # outputs have the same phases one period later
            return periods * down, o - periods * up

        return StreamRule(axis, ready, lambda n: -(-n * up // down), start)

    def reference(self, row: RowContext, x: Any) -> Any:
        up: float
        down: float
        if row["out_length"] is not None:
            up, down, length = int(row.number("out_length")), len(x), int(row.number("out_length"))
        elif row["scale"] is not None:
            up, down = row.number("scale"), 1.0
            length = math.ceil(len(x) * up / down)
        else:
            up, down = row.number("out_rate"), row.number("in_rate")
            length = math.ceil(len(x) * up / down)
        ratio = (Fraction(up) / Fraction(down)).limit_denominator(1 << 20)
        dtype = DType.of(x.dtype) if row["dtype"] is None else row["dtype"]
        wide = x.astype(np.float64) / (1 if x.dtype.kind == "f" else np.iinfo(x.dtype).max)
        y = _resampled(wide, ratio, length, row["quality"], row["filter"] == "dali").astype(np.float32)
        if dtype == DType.FLOAT:
            return y
        return cast_array(y.astype(np.float64) * dtype.positive_range, dtype)


def _by_row(
    c: Lowering, x: Value, shape: tuple[Scalar, ...], rates: tuple[Scalar, Scalar], attrs: tuple[float, bool]
) -> Value:
    """Return a signal at rates that differ by row, whose weights a GPU computes."""
    (found,) = c.native("resample_filter", [], [(DType.FLOAT64, (_FILTER,), "")], params=rates, attrs=attrs)
    numbers = [c.element(found, i) for i in range(_FILTER)]
    taps, rows = numbers[2:4]
    passes = {
        "values": (rows * taps + _VALUES - 1) // _VALUES,
        "weights": (rows + _THREADS - 1) // _THREADS,
        "outputs": (math.prod(shape) + _THREADS - 1) // _THREADS,
    }
    return c.native(
        "audio_resample", [x], [(DType.FLOAT, shape, x.layout)], params=(*rates, *numbers, int(attrs[1])),
        attrs=(*attrs, False), own=Launches("ResampleRow", passes, _WEIGHT_BYTES * rows * taps),
    )[0]  # fmt: skip


class _Tile(NamedTuple):
    """Outputs of a GPU block that share inputs and weights: ``ResampleTile`` in native/device/own_audioresample.cuh."""

    times: int  # shortest periods in one
    phases: int
    periods: int
    steps: int
    trim: int
    pitch: int

    @property
    def bytes(self) -> int:
        return 4 * (self.phases * self.steps * _PARTIAL_SUMS + self.periods * self.pitch)


def _tile(up: int, down: int, quality: float, aliasing: bool) -> _Tile | None:
    """Return the tile of a ratio; None: it has too many weights, or its tiles do not fit into shared memory."""
    used = 2 * math.ceil(_shape(quality, Fraction(up, down), aliasing)[2])
    taps = -(-used // _PARTIAL_SUMS) * _PARTIAL_SUMS
    if taps * up > _MOST_WEIGHTS:
        return None
    steps = -(-(used + -(-(_TILE_PHASES - 1) * down // up)) // _PARTIAL_SUMS)
    trim = (taps - used) // 2
    for phases, periods in _TILES:
        width = -(-(phases - _TILE_PHASES) * down // up) + steps * _PARTIAL_SUMS + 2 * trim
        pitch = (-(-width // _PARTIAL_SUMS) | 1) * _PARTIAL_SUMS
        tile = _Tile(max(_LONG_PERIOD // up, 1), phases, periods, steps, trim, pitch)
        if tile.bytes <= _TILE_ROOM:
            return tile
    return None


def _launches(
    shape: tuple[Scalar, ...], rates: tuple[int, int], attrs: tuple[float, bool]
) -> tuple[Launches, tuple[int, ...]]:
    """Return the GPU's launches for weights that are known, and the numbers that follow the rates."""
    blocks: Scalar = (math.prod(shape) + _THREADS - 1) // _THREADS
    tile = _tile(*rates, *attrs)
    if tile is None:
        return Launches("AudioResample", {"outputs": blocks}), ()
    period = rates[0] * tile.times
    periods = (shape[0] + period - 1) // period
    fits = periods >= _LEAST_PERIODS
    slices = -(-period // tile.phases)
    tiles = math.prod(shape[1:]) * slices * ((periods + tile.periods - 1) // tile.periods)
    tiled = LaunchPass(ex.where(fits, tiles, 0), shared_bytes=ex.where(fits, tile.bytes, 0),
                       max_shared_bytes=_TILE_ROOM, resident_threads=_RESIDENT)  # fmt: skip
    return Launches("AudioResample", {"outputs": ex.where(fits, 0, blocks), "tiles": tiled}), tile


def _whole(up: Scalar, down: Scalar) -> tuple[int, int] | None:
    """Return whole rates without a common divisor; None: they are known at run time only, no whole numbers, or too far
    apart, for which there is a check.
    """
    if not (is_static(up) and is_static(down)) or not (up * _MOST >= down and up <= down * _MOST):
        return None
    if any(rate != round(rate) or not 1 <= rate <= _LARGEST_TERM for rate in (up, down)):
        return None
    ratio = Fraction(round(up), round(down))
    return ratio.numerator, ratio.denominator


def _shape(quality: float, ratio: Fraction, aliasing: bool) -> tuple[float, float, float]:
    """Return attenuation in dB, cutoff relative to half of the input's rate, and inputs to each side of a filter."""
    lobes = round(0.007 * quality**2 - 0.09 * quality + 3)
    attenuation = 40 + 0.8 * quality
    if aliasing:
        return attenuation, 1.0, float(lobes)
    cutoff = (1 - (attenuation - 7.95) / (14.36 * lobes) / 2) * min(1.0, float(ratio))
    return attenuation, cutoff, lobes / cutoff


def _resampled(x: Any, ratio: Fraction, length: int, quality: float, aliasing: bool) -> Any:
    """Return the samples in double, by the formula of the filter."""
    attenuation, cutoff, half = _shape(quality, ratio, aliasing)
    out = np.zeros((length, *x.shape[1:]))
    for o in range(length):
        at = o / ratio
        near = np.arange(math.floor(at) - math.ceil(half), math.floor(at) + math.ceil(half) + 2)
        distance = near - float(at)
        y = np.clip(distance / half, -1, 1)
        if aliasing:
            window = 0.5 * (1 + np.cos(np.pi * y))
        else:
            beta = 0.1102 * (attenuation - 8.7)
            if attenuation <= 50:
                beta = 0.5842 * (attenuation - 21) ** 0.4 + 0.07886 * (attenuation - 21)
            window = np.where(np.abs(y) < 1, np.i0(beta * np.sqrt(1 - y**2)) / np.i0(beta), 0)
        weights = cutoff * np.sinc(cutoff * distance) * window
        weights = weights if aliasing else weights / weights.sum()
        inside = (near >= 0) & (near < len(x))
        out[o] = np.tensordot(weights[inside], x[near[inside]], 1)
    return out
