# SPDX-License-Identifier: Apache-2.0
"""``noise.shot``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Launches, Value
from ...contract.types import DType
from ..generic.cast import cast_array

_ELEMENTS, _BYTES = 1024, 4096  # of a block on a GPU (native/device/own_shot.cuh); of bytes
_TABLE_BYTES = 256 * (8 + 7 * 8 + 8 + 64 * 4)  # of a row of bytes on a GPU, likewise
_TYPES = (
    DType.UINT8, DType.INT8, DType.UINT16, DType.INT16, DType.UINT32, DType.INT32, DType.FLOAT, DType.FLOAT64,
)  # fmt: skip
_SMALL = 10.0  # means below are searched from 0 on (native/shared/poisson.hpp)
_ATTEMPTS = 64


class NoiseShot(Operator, name="noise.shot"):
    """Add shot noise: ``factor`` times a number from the Poisson distribution with the mean ``x / factor``. Input:
    numbers of any shape, except 64-bit integers. Output: the same type and shape.

    Numbers below 0 become 0; a ``factor`` of 0 leaves the data as they are. DALI uses 12 if no factor is given,
    although its documentation says 20, and returns zeros for 0. Each element has its own draw, also each channel. A
    draw depends on the seed, the epoch, the sample and the element's place.
    """

    gives_bfloat16 = takes_bfloat16 = True
    draws = 1
    exactness = "the same bits on every machine; the reference's logarithm and exponential may differ in the last place"
    factor = arg("float", 20.0, per_row=True, doc="Size of an event, at least 0: larger numbers give more noise.")
    cases = ({}, {"factor": 2.0}, {"factor": 0.0})

    def lower(self, c: Lowering, x: Value) -> Value:
        own = x.dtype
        carrier = DType.FLOAT if own in (DType.FLOAT16, DType.BFLOAT16) else own
        if carrier not in _TYPES:
            raise UnsupportedError(
                f"`noise.shot`: expected numbers of up to 32 bits or float64, got {own}. Cast it first"
            )
        factor = c.scalar("factor")
        c.require(
            ex.both(ex.isfinite(factor), factor >= 0), "expected a finite `factor` of at least 0, got {0}", factor
        )
        count = math.prod(x.shape)
        c.require(count <= 1 << 32, "expected at most 2**32 elements, got {0}", count)
        words = c.native("draw_words", [], [(DType.INT32, (2,), "")], attrs=c.draw)[0]
        numbers = (factor, c.element(words, 0), c.element(words, 1))
        if carrier.size == 1:
            own_form = Launches("Shot", {"table": 1, "draw": (count + _BYTES - 1) // _BYTES}, _TABLE_BYTES)
        else:
            own_form = Launches("Shot", {"draw": (count + _ELEMENTS - 1) // _ELEMENTS})
        out = c.native(
            "shot", [c.cast(x, carrier)], [(carrier, x.shape, x.layout)], params=numbers, own=own_form
        )[0]  # fmt: skip
        return c.cast(out, own)

    def reference(self, row: RowContext, x: Any) -> Any:
        factor, own = row.number("factor"), DType.of(x.dtype)
        words = [row.stream.word() for _ in range(2)]
        if factor == 0:
            return x
        wide = np.asarray(x, np.float64).reshape(-1)
        noisy = [_drawn(v / factor, i, words[0], words[1]) * factor for i, v in enumerate(wide.tolist())]
        return cast_array(np.array(noisy, np.float64), own).reshape(x.shape)


def _drawn(mean: float, element: int, key: int, stream: int) -> float:
    """Draw from the Poisson distribution as native/shared/poisson.hpp does."""
    if mean <= 0:
        return 0.0
    if not mean < 1e300:
        return mean
    numbers = _uniforms(element, key, stream)
    if mean < _SMALL:
        u, p, k = next(numbers), math.exp(-mean), 0
        total = p
        while u > total:
            k += 1
            p *= mean / k
            if total + p == total:
                break
            total += p
        return float(k)
    b = 0.931 + 2.53 * math.sqrt(mean)
    a = -0.059 + 0.02483 * b
    inverse_alpha, limit = 1.1239 + 1.1328 / (b - 3.4), 0.9277 - 3.6224 / (b - 2)
    for _ in range(_ATTEMPTS):
        u, v = next(numbers) - 0.5, next(numbers)
        us = 0.5 - abs(u)
        k = math.floor((2 * a / us + b) * u + mean + 0.43)
        if us >= 0.07 and v <= limit:
            return float(k)
        if k < 0 or (us < 0.013 and v > us):
            continue
        left = math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
        if left <= -mean + k * math.log(mean) - math.lgamma(k + 1):
            return float(k)
    return float(math.floor(mean))


def _uniforms(element: int, key: int, stream: int) -> Any:
    """Yield numbers in (0, 1), each of a stream of its own."""
    while True:
        low, high, k = element, stream & 0xFFFFFFFF, key
        for _ in range(10):
            product = 0xD256D193 * low
            low, high = (product >> 32) ^ k ^ high, product & 0xFFFFFFFF
            k = k + 0x9E3779B9 & 0xFFFFFFFF
        yield (low + 0.5) * 2.0**-32
        stream += 1
