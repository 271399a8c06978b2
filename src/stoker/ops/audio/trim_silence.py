# SPDX-License-Identifier: Apache-2.0
"""``trim_silence``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.samples import Rows
from ...contract.step import Launches, Value
from ._signals import at_least, mono
from .nonsilent_region import NonsilentRegion

_ELEMENTS = 2048  # of a GPU block (native/device/own_trim.cuh)


class TrimSilence(Operator, name="trim_silence"):
    """Cut the silence off both ends of a signal. Input: one channel, ``(n,)`` or ``(n, 1)``, any number type. Output:
    the region of `nonsilent_region`, extended by ``margin`` samples on both sides, ``(m,)``.

    A sample is loud if the mean square of the last ``window_length`` samples reaches ``cutoff_db`` below the loudest
    ones. A signal of NaNs becomes empty. Silence within the region stays.

    On a GPU the number of samples is known when the batch is done, so that only operators on single elements may
    follow. Trim on the CPU, with ``device="cpu"``, before others.
    """

    cutoff_db = arg("float", -60.0, doc="Threshold in dB relative to the loudest window, or to `reference_power`.")
    window_length = arg("int", 2048, doc="Samples of the moving mean, at most those of the signal.")
    reference_power = arg("float", 0.0, doc="Power of 0 dB; 0: the largest moving mean of the signal.")
    margin = arg("int", 0, doc="Samples to keep before and after the region.")
    cases = (
        {"window_length": 64, "cutoff_db": -10.0},
        {"window_length": 32, "cutoff_db": -12.0, "margin": 50},
    )

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        return NonsilentRegion.case_inputs(case)

    def lower(self, c: Lowering, x: Value) -> Value:
        x, margin = mono(c, x), at_least(c, "margin", 0)
        names = ("cutoff_db", "window_length", "reference_power")
        found = c.apply("nonsilent_region", x, **{name: c.const(name) for name in names})
        own = Launches("Trim", {"copy": ex.maximum((x.shape[0] + _ELEMENTS - 1) // _ELEMENTS, 1)})
        output = [(x.dtype, (None,), "")]
        y, _ = c.native("trim", [x, *found], output, params=(margin,), max_output=x.shape[0], own=own)
        return y

    def reference(self, row: RowContext, x: Any) -> Any:
        x = x.reshape(-1)
        begin, length = (int(v) for v in NonsilentRegion().reference(row, x))
        some = row["margin"] if length else 0
        return np.array(x[max(begin - some, 0) : begin + length + some])
