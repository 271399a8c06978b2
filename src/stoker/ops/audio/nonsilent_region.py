# SPDX-License-Identifier: Apache-2.0
"""``nonsilent_region``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.samples import Rows
from ...contract.step import Launches, Value
from ...contract.types import DType
from ...native import _native
from ._signals import at_least, is_finite, mono, signals

_PART, _RUN, _PARTS = 8192, 32, 32  # samples, samples, parts of a block: native/device/own_nonsilent.cuh
_PART_BYTES = _PART // _RUN * 16  # two doubles for each run
_RESET_DOC = (
    "Accepted, without effect: sums are in double, and a new one begins every 8192 samples. -1, or a multiple of "
    "`window_length`."
)


class NonsilentRegion(Operator, name="nonsilent_region"):
    """Find the region of a signal that is not silent. Input: one channel, ``(n,)`` or ``(n, 1)``, any number type.
    Outputs: the first sample, and the number of samples, int32 without axes.

    A sample is loud if the mean square of the last ``window_length`` samples reaches ``cutoff_db`` below the reference.
    The region ends at the last loud sample and begins ``window_length - 1`` samples before the first one, as DALI's. A
    signal of zeros is loud everywhere, one of NaNs or without samples nowhere (0, 0). ``slice`` cuts the region.
    """

    outputs = 2
    cutoff_db = arg("float", -60.0, doc="Threshold in dB relative to the reference.")
    window_length = arg("int", 2048, doc="Samples of the moving mean, at most those of the signal.")
    reference_power = arg("float", 0.0, doc="Power of 0 dB; 0: the largest moving mean of the signal.")
    reset_interval = arg("int", 8192, doc=_RESET_DOC)
    cases = (
        {"window_length": 64, "cutoff_db": -10.0},
        {"window_length": 32, "reference_power": 0.02, "cutoff_db": -3.0},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        rows = signals(case)
        for (x,) in rows:
            x[:90] *= 0.01
            x[-150:] *= 0.05
        return rows

    def lower(self, c: Lowering, x: Value) -> tuple[Value, ...]:
        window, reset = at_least(c, "window_length", 1), c.const("reset_interval")
        c.expect(
            not c.scope_given("reset_interval") or reset == -1 or (reset > 0 and reset % window == 0),
            f"expected `reset_interval` -1, or a multiple of `window_length` ({window}), got {reset}",
        )
        cutoff, reference = float(c.const("cutoff_db")), float(c.const("reference_power"))
        c.expect(is_finite(cutoff) and abs(cutoff) <= 3000, f"expected `cutoff_db` from -3000 to 3000, got {cutoff:g}")
        c.expect(is_finite(reference) and reference >= 0, f"expected `reference_power` >= 0, got {reference:g}")
        (ratio,) = _native.xmath("exp", np.array([cutoff / 10 * 2.302585092994046]))
        signal = c.cast(mono(c, x), DType.FLOAT)
        outputs = [(DType.INT32, (), ""), (DType.INT32, (), "")]
        parts = (signal.shape[0] + _PART - 1) // _PART
        passes = {"sums": (parts + _PARTS - 1) // _PARTS, "region": 1}
        own = Launches("Nonsilent", passes, _PART_BYTES * parts)
        return c.native("nonsilent_region", [signal], outputs, params=(window, float(ratio), reference), own=own)

    def reference(self, row: RowContext, x: Any) -> Any:
        squares = x.reshape(-1).astype(np.float64) ** 2
        window = min(row["window_length"], len(squares))
        sums = np.array([squares[max(i + 1 - window, 0) : i + 1].sum() for i in range(len(squares))])
        least = (row["reference_power"] * window or sums.max()) * 10 ** (row["cutoff_db"] / 10)
        loud = np.flatnonzero(sums >= least)
        begin = max(int(loud[0]) - window + 1, 0) if len(loud) else 0
        return np.int32(begin), np.int32(loud[-1] - begin + 1 if len(loud) else 0)
