# SPDX-License-Identifier: Apache-2.0
"""``convolve``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.samples import Rows
from ...contract.step import Launches, Value
from ...contract.types import DType
from ._signals import blocks_of_length, expect_floats, factor_blocks, mono, signals

_LONGEST = 1 << 18  # native/kernels/transforms.cpp
_LEAST_SIZE = 512  # of a transform, there as well


class Convolve(Operator, name="convolve"):
    """Convolve a signal with an impulse response, such as that of a room. Inputs: the signal ``(n,)`` and the impulse
    response ``(m,)``, float32, each of one channel. Output: ``(n + m - 1,)``, or with another ``mode`` a part of it.

    Blocks of the signal are convolved by products of spectra, which costs little also for responses of seconds. The
    largest error is about 1e-6 of the largest value. The shorter one of both has at most 262144 samples. The
    response is used as it is: scale it before if the level matters. Modes are those of
    ``scipy.signal.convolve``, and "first".
    """

    exactness = "within float32 rounding"
    inputs = (2, 2)
    mode = arg(
        "str", "full", choices=("full", "same", "valid", "first"),
        doc='Part of the result: all; the n samples in the middle; those that need no sample beyond the ends; or the '
        'first n samples ("first"), in which the direct sound of a room stays where it is.',
    )  # fmt: skip
    cases = ({}, {"mode": "same"}, {"mode": "valid"}, {"mode": "first"})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        rng = np.random.default_rng(8)
        sizes = (300, 1, 33)
        responses = [(rng.normal(0, 1, m) * np.exp(-np.arange(m) / 40)).astype(np.float32) for m in sizes]
        return [(x, h) for (x,), h in zip(signals(case), responses, strict=True)]

    def lower(self, c: Lowering, x: Value, response: Value) -> Value:
        for one in (x, response):
            expect_floats(c, one)
        x, h = mono(c, x), mono(c, response)
        n, m = x.shape[0], h.shape[0]
        text = f"expected two signals with samples, the shorter one of at most {_LONGEST}, got {{0}} and {{1}}"
        c.require(ex.both(ex.both(n > 0, m > 0), ex.minimum(n, m) <= _LONGEST), text, n, m)
        mode = c.const("mode")
        if mode == "full":
            first, count = 0, ex.maximum(n + m - 1, 0)
        elif mode == "first":
            first, count = 0, n
        elif mode == "same":
            first, count = ex.maximum(m - 1, 0) // 2, n
        else:
            first, count = ex.maximum(ex.minimum(n, m) - 1, 0), ex.absolute(n - m) + 1
        return c.native("convolve", [x, h], [(DType.FLOAT, (count,), "")], **_launches(first, count, ex.minimum(n, m)))[
            0
        ]

    def reference(self, row: RowContext, x: Any, response: Any) -> Any:
        x, h = x.reshape(-1).astype(np.float64), response.reshape(-1).astype(np.float64)
        whole = np.convolve(x, h).astype(np.float32)
        n, m = len(x), len(h)
        first, count = {
            "full": (0, n + m - 1),
            "first": (0, n),
            "same": ((m - 1) // 2, n),
            "valid": (min(n, m) - 1, abs(n - m) + 1),
        }[row["mode"]]
        return whole[first : first + count]


def _launches(first: Scalar, count: Scalar, m: Scalar) -> dict[str, Any]:
    """Return the numbers and the form for GPUs of a part of a convolution whose shorter signal has ``m`` samples."""
    size: Scalar = _LEAST_SIZE
    for known in (_LEAST_SIZE << i for i in range((2 * _LONGEST // _LEAST_SIZE).bit_length() - 1)):
        size = size * ex.where(2 * m > known, 2, 1)
    step = size - m + 1
    begin = first // step
    blocks = (first + count + step - 1) // step - begin
    length = size // 2
    floats, block = 2 * (length - 1) + 2 * (length // 2 + 1), blocks_of_length(length)
    passes = {
        "factors": factor_blocks(floats),
        "response": block.launch(1),
        "blocks": block.launch((blocks + block.frames - 1) // block.frames),
    }
    scratch = 4 * (floats + 2 * (length + 1)) + blocks * block.device_bytes
    numbers = (first, size, begin, *block.numbers, floats)
    return {"params": numbers, "own": Launches("Convolve", passes, scratch)}
