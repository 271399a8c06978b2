# SPDX-License-Identifier: Apache-2.0
"""Separable resampling in plain NumPy: the reference of the native kernel.

Source of the convention: Pillow's ``Image.resize`` (version 13: horizontal pass first unless the vertical one saves
more; the region passes through float32; 22-bit integer weights and 8-bit rounding between the passes for uint8, double
sums otherwise, of which int32 rounds half away from zero), with channels independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...contract.sums import sum_in_order
from ...contract.types import DType, InterpType
from ..generic.cast import cast_array

PRECISION = 32 - 8 - 2


def _sinc(x: float) -> float:
    return 1.0 if x == 0 else math.sin(math.pi * x) / (math.pi * x)


def _cubic(x: float, a: float = -0.5) -> float:
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


_054, _046 = float(np.float32(0.54)), float(np.float32(0.46))  # Pillow's constants are floats

_FILTERS: dict[int, tuple[float, Callable[[float], float]]] = {
    InterpType.INTERP_LINEAR: (1.0, lambda x: max(0.0, 1 - abs(x))),
    InterpType.INTERP_TRIANGULAR: (1.0, lambda x: max(0.0, 1 - abs(x))),
    InterpType.INTERP_CUBIC: (2.0, _cubic),
    InterpType.INTERP_LANCZOS3: (3.0, lambda x: _sinc(x) * _sinc(x / 3) if -3 <= x < 3 else 0.0),
    InterpType.INTERP_GAUSSIAN: (1.0, lambda x: math.exp(-4 * x * x) if abs(x) < 1 else 0.0),
    InterpType.INTERP_BOX: (0.5, lambda x: 1.0 if -0.5 < x <= 0.5 else 0.0),
    InterpType.INTERP_HAMMING: (
        1.0, lambda x: 1.0 if x == 0 else 0.0 if abs(x) >= 1 else _sinc(x) * (_054 + _046 * math.cos(math.pi * x))
    ),
}  # fmt: skip


def _weights(n: int, low: float, high: float, out: int, kind: int, antialias: bool) -> list[tuple[int, list[float]]]:
    """Return for each output element the first input element and weights that sum to 1."""
    radius, f = _FILTERS[kind]
    scale = (high - low) / out
    stretch = max(scale, 1.0) if antialias or kind == InterpType.INTERP_TRIANGULAR else 1.0
    support = radius * stretch
    rows = []
    for i in range(out):
        center = low + (i + 0.5) * scale
        first = max(0, int(center - support + 0.5))
        last = min(n, int(center + support + 0.5))
        w = [f((k + first - center + 0.5) * (1 / stretch)) for k in range(last - first)]
        total = sum_in_order(w)
        rows.append((first, [x / total if total else x for x in w]))
    return rows


def _pass(x: npt.NDArray[Any], rows: Sequence[tuple[int, list[float]]]) -> npt.NDArray[Any]:
    """Resample along axis 0."""
    out = np.empty((len(rows), *x.shape[1:]), np.float64 if x.dtype != np.uint8 else x.dtype)
    for i, (first, weights) in enumerate(rows):
        part = x[first : first + len(weights)]
        if x.dtype == np.uint8:
            k = [int(math.copysign(math.floor(abs(w) * (1 << PRECISION) + 0.5), w)) for w in weights]
            total = np.tensordot(np.asarray(k, np.int64), part.astype(np.int64), 1) + (1 << (PRECISION - 1))
            out[i] = np.clip(total >> PRECISION, 0, 255)
        else:
            total = np.zeros(x.shape[1:], np.float64)
            for w, line in zip(weights, part, strict=True):
                total = total + line.astype(np.float64) * w
            out[i] = total
    if x.dtype == np.uint8:
        return out
    if x.dtype == np.int32:
        out = np.trunc(out + np.copysign(0.5, out))
    return cast_array(out, DType.of(x.dtype))  # type: ignore[no-any-return]


def _nearest(x: npt.NDArray[Any], low: float, high: float, out: int) -> npt.NDArray[Any]:
    """Sample the nearest pixel as Pillow does: accumulate the step, and leave outputs after the last pixel zero."""
    scale = (high - low) / out
    at, result = low + scale * 0.5, np.zeros((out, *x.shape[1:]), x.dtype)
    for i in range(out):
        if int(at) < len(x):
            result[i] = x[int(at)]
        at += scale
    return result


class _Axis:
    """One axis of a resize, with Pillow's shortcuts: a pass that only moves pixels copies them."""

    def __init__(self, n: int, out: int, low: float, high: float, kind: int) -> None:
        self.n, self.out, self.kind, self.mirrored = n, out, kind, low > high
        ends = min(low, high), max(low, high)
        half = (ends[1] - ends[0]) / (2 * out)
        if not (ends[0] + half >= 0 and ends[1] - half < n):  # the centre of an output lies outside
            ends = min(max(ends[0], 0.0), n), min(max(ends[1], 0.0), n)
        first, last = (np.float32(v) for v in ends)
        extent = np.float32(last - first)
        self.low, self.high = float(first), float(first) + float(extent)
        self.picks_whole = out == n and self.low == 0 and float(last) == out
        self.picks_some = float(extent) == out and self.low == math.floor(self.low) and self.low + out <= n

    def run(self, x: npt.NDArray[Any], axis: int, antialias: bool) -> npt.NDArray[Any]:
        x = np.moveaxis(x, axis, 0)
        if self.kind == InterpType.INTERP_NN:
            y = _nearest(x, self.low, self.high, self.out)
        else:
            y = _pass(x, _weights(self.n, self.low, self.high, self.out, self.kind, antialias))
        return np.moveaxis(y[::-1] if self.mirrored else y, 0, axis)


def resize_array(
    x: npt.NDArray[Any],
    layout: str,
    out: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    kinds: Sequence[int],
    antialias: bool,
) -> npt.NDArray[Any]:
    """Resample the H and W axes of ``x`` from the region ``low``..``high`` (y, x) to ``out``."""
    own = x.dtype
    if own not in (np.uint8, np.uint16, np.int16, np.int32, np.float32):
        x = x.astype(np.float32)
    at = [layout.index(a) for a in "HW"]
    if 0 in [int(n) for n in out]:
        return np.zeros([int(out[at.index(i)]) if i in at else n for i, n in enumerate(x.shape)], own)
    axes = [
        _Axis(x.shape[at[i]], int(out[i]), float(low[i]), float(high[i]), int(kinds[i])) for i in (0, 1)
    ]  # fmt: skip
    cropped = all(a.picks_some for a in axes)
    for a in axes:
        # For floats, skip a pass only where Pillow does: its weights of whole-pixel shifts are 1e-17 rather than zero.
        if cropped or (a.picks_whole if x.dtype == np.float32 else a.picks_some):
            a.kind = InterpType.INTERP_NN
    saved = [a.n - a.out for a in axes]
    # Pillow 13 and later run the vertical pass first if that leaves much less work.
    filtered = all(a.kind != InterpType.INTERP_NN for a in axes)
    vertical_first = filtered and saved[0] > 0 and saved[0] > 2 * saved[1]
    for i in (0, 1) if vertical_first else (1, 0):
        x = axes[i].run(x, at[i], antialias)
    return cast_array(x, DType.of(own)) if x.dtype != own else x
