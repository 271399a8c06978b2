# SPDX-License-Identifier: Apache-2.0
"""Separable resampling in plain NumPy: what the native kernel must equal.

Source of the convention: Pillow's ``Image.resize`` (version 13: horizontal pass first unless the vertical one saves more, 22-bit integer weights and 8-bit rounding
between the passes for uint8; double sums otherwise), with channels independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..generic.cast import cast_array
from ...contract.types import DType, InterpType

PRECISION = 32 - 8 - 2


def _sinc(x: float) -> float:
    return 1.0 if x == 0 else math.sin(math.pi * x) / (math.pi * x)


def _cubic(x: float, a: float = -0.5) -> float:
    x = abs(x)
    if x < 1:
        return ((a + 2) * x - (a + 3)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2 else 0.0


_FILTERS: dict[int, tuple[float, Callable[[float], float]]] = {
    InterpType.INTERP_LINEAR: (1.0, lambda x: max(0.0, 1 - abs(x))),
    InterpType.INTERP_TRIANGULAR: (1.0, lambda x: max(0.0, 1 - abs(x))),
    InterpType.INTERP_CUBIC: (2.0, _cubic),
    InterpType.INTERP_LANCZOS3: (3.0, lambda x: _sinc(x) * _sinc(x / 3) if -3 <= x < 3 else 0.0),
    InterpType.INTERP_GAUSSIAN: (1.0, lambda x: math.exp(-4 * x * x) if abs(x) < 1 else 0.0),
    InterpType.INTERP_BOX: (0.5, lambda x: 1.0 if -0.5 < x <= 0.5 else 0.0),
    InterpType.INTERP_HAMMING: (
        1.0, lambda x: 1.0 if x == 0 else 0.0 if abs(x) >= 1 else _sinc(x) * (0.54 + 0.46 * math.cos(math.pi * x))
    ),
}  # fmt: skip


def _weights(n: int, low: float, high: float, out: int, kind: int, antialias: bool) -> list[tuple[int, list[float]]]:
    """Per output element: first input element and weights that sum to 1."""
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
        total = sum(w)
        rows.append((first, [x * (1 / total) if total else x for x in w]))
    return rows


def _pass(x: npt.NDArray[Any], rows: Sequence[tuple[int, list[float]]]) -> npt.NDArray[Any]:
    """One pass over axis 0."""
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
    return out if x.dtype == np.uint8 else cast_array(out, DType.of(x.dtype))


def _nearest(x: npt.NDArray[Any], low: float, high: float, out: int) -> npt.NDArray[Any]:
    scale = (high - low) / out
    index = [min(max(int(math.floor(low + scale * 0.5 + i * scale)), 0), x.shape[0] - 1) for i in range(out)]
    return x[index]


def _axis(x: npt.NDArray[Any], axis: int, out: int, low: float, high: float, kind: int, antialias: bool) -> Any:
    x = np.moveaxis(x, axis, 0)
    mirrored = low > high
    low, high = min(low, high), max(low, high)
    if kind == InterpType.INTERP_NN:
        y = _nearest(x, low, high, out)
    elif out == x.shape[0] and low == 0 and high == x.shape[0]:
        y = x
    else:
        y = _pass(x, _weights(x.shape[0], low, high, out, kind, antialias))
    return np.moveaxis(y[::-1] if mirrored else y, 0, axis)


def resize_array(
    x: npt.NDArray[Any],
    layout: str,
    out: Sequence[float],
    low: Sequence[float],
    high: Sequence[float],
    kinds: Sequence[int],
    antialias: bool,
) -> npt.NDArray[Any]:
    """``x`` with its H and W axes resampled from the region ``low``..``high`` (y, x) to ``out``."""
    own = x.dtype
    if own not in (np.uint8, np.uint16, np.int16, np.int32, np.float32):
        x = x.astype(np.float32)
    extents = [x.shape[layout.index(a)] for a in "HW"]
    saved = [n - o for n, o in zip(extents, out, strict=True)]
    # Since version 13 Pillow runs the vertical pass first where that leaves much less to do.
    vertical_first = InterpType.INTERP_NN not in kinds and saved[0] > 0 and saved[0] > 2 * saved[1]
    for i in (0, 1) if vertical_first else (1, 0):
        at = layout.index("HW"[i])
        x = _axis(x, at, int(out[i]), float(low[i]), float(high[i]), int(kinds[i]), antialias)
    return cast_array(x, DType.of(own)) if x.dtype != own else x
