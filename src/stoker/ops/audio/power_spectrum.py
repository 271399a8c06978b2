# SPDX-License-Identifier: Apache-2.0
"""``power_spectrum``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.expr import Scalar
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.samples import Rows
from ...contract.step import Launches, Value
from ...contract.streaming import StreamRule
from ...contract.types import DType
from ._signals import (
    MAX_NFFT,
    across_time,
    at_least,
    blocks_of_frames,
    blocks_of_length,
    expect_floats,
    factor_blocks,
    fft_table,
    spectra,
)

_BLOCKS = 32  # of a GPU for a row whose transforms do not fit into shared memory, for bounded memory
_DOUBLES = 32  # bytes per point for the filter of a table (native/device/own_factors.cuh)


class PowerSpectrum(Operator, name="power_spectrum"):
    """Compute the power of the spectrum along an axis. Input: float32, any shape. Output: float32, with
    ``nfft // 2 + 1`` bins along the axis.

    Any ``nfft`` works; products of 2, 3 and 5 are fast. The largest error is about 4e-7 of the largest value of a
    spectrum.
    """

    exactness = "within float32 rounding"
    axis = arg("int", -1, doc="The axis of time.")
    nfft = arg(
        "int", None, doc="Points of the transform; by default the extent of the axis. Larger: zeros follow the data."
    )
    power = arg("int", 2, choices=(1, 2), doc="Exponent of the magnitude: 2 for the power, 1 for the magnitude.")
    cases = ({"axis": 0}, {"nfft": 96, "power": 1, "axis": 0}, {"axis": 0, "nfft": 67}, {"axis": 1})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return spectra(case)

    def lower(self, c: Lowering, x: Value) -> Value:
        expect_floats(c, x)
        axis = c.const("axis")
        c.expect(-x.rank <= axis < x.rank, f"expected `axis` in [-{x.rank}, {x.rank}), got {axis}")
        axis %= x.rank
        n = x.shape[axis]
        nfft = n if c.const("nfft") is None else at_least(c, "nfft", 1)
        c.require(n > 0, "expected elements along the axis, got none")
        c.require(n <= nfft, "expected at most {0} elements along the axis (`nfft`), got {1}", nfft, n)
        c.require(nfft <= MAX_NFFT, "expected `nfft` of at most {0}, got {1}", MAX_NFFT, nfft)
        shape = (*x.shape[:axis], nfft // 2 + 1, *x.shape[axis + 1 :])
        layout = x.layout[:axis] + "f" + x.layout[axis + 1 :] if x.layout else ""
        output, magnitude = [(DType.FLOAT, shape, layout)], c.const("power") == 1
        lines = math.prod((*x.shape[:axis], *x.shape[axis + 1 :]))
        given = isinstance(nfft, int) and 1 <= nfft <= MAX_NFFT
        floats: Scalar = 0
        passes: dict[str, Any] = {}
        if isinstance(nfft, int) and given:
            inputs, block = [x, fft_table(c, nfft)], blocks_of_frames(nfft)
        else:
            sizes = c.native("fft_sizes", [], [(DType.FLOAT64, (2,), "")], params=(nfft,))[0]
            length, floats = c.element(sizes, 0), c.element(sizes, 1)
            inputs, block = [x], blocks_of_length(length)
            passes = {"factors": factor_blocks(floats), "filter": 1}
        blocks = (lines + block.frames - 1) // block.frames
        blocks = ex.where(block.shared_bytes > 0, blocks, ex.minimum(blocks, _BLOCKS))
        scratch = blocks * block.device_bytes
        if not given:
            scratch += 8 * ((floats + 1) // 2) + _DOUBLES * length
        own = Launches("PowerSpectrum", passes | {"lines": block.launch(blocks)}, scratch, constants=(int(given),))
        return c.native(
            "power_spectrum", inputs, output, attrs=(axis, magnitude, given), own=own,
            params=(nfft, axis, int(magnitude), *block.numbers, blocks, floats),
        )[0]  # fmt: skip

    @classmethod
    def stream_rule(cls, args: Mapping[str, Any], x: Spec, axis: int) -> StreamRule:
        return across_time(args["axis"] % len(x.shape), axis)

    def reference(self, row: RowContext, x: Any) -> Any:
        spectrum = np.fft.rfft(x.astype(np.float64), row["nfft"], row["axis"])
        return (np.abs(spectrum) ** row["power"]).astype(np.float32)
