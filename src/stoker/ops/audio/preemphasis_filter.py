# SPDX-License-Identifier: Apache-2.0
"""``preemphasis_filter``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import expr as ex
from ...contract.argument import arg
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext, Spec
from ...contract.samples import Rows
from ...contract.step import Joint, Launches, Value, ViewOp
from ...contract.streaming import StreamRule
from ...contract.types import DType
from ..generic.cast import cast_array
from ._signals import SPECTRA, in_tiles, mono, signals

_ELEMENTS = 2048  # of a GPU block (native/device/own_preemphasis.cuh)
_BORDERS = ("clamp", "zero", "reflect")  # native/kernels/signal.cpp


class PreemphasisFilter(Operator, name="preemphasis_filter"):
    """Raise the high frequencies of a signal: ``y[t] = x[t] - c x[t - 1]``. Input: one channel, ``(n,)`` or ``(n, 1)``,
    any number type. Output: the same shape. Computed in float32, exactly in this order.

    Signals of several channels are refused: DALI filters them as one sequence, across channels.
    """

    preemph_coeff = arg("float", 0.97, per_row=True, doc="The coefficient c.")
    border = arg(
        "str",
        "clamp",
        choices=_BORDERS,
        doc="Sample before the first: the first (clamp), 0 (zero) or the second (reflect).",
    )
    dtype = arg("dtype", DType.FLOAT, doc="Element type of the output. Integers are rounded and saturate.")
    cases = ({}, {"border": "zero", "preemph_coeff": 0.5}, {"border": "reflect", "dtype": "int16"})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> Rows:
        if case.get("dtype") is None:
            return signals(case)
        return [((100 * x).astype(np.int16),) for (x,) in signals(case)]

    def lower(self, c: Lowering, x: Value) -> Value:
        shape, layout = x.shape, x.layout
        coefficient = c.scalar("preemph_coeff")
        c.require(ex.isfinite(coefficient), "expected a finite `preemph_coeff`, got {0}", coefficient)
        one = c.cast(mono(c, x), DType.FLOAT)
        border = _BORDERS.index(c.const("border"))
        own = Launches("Preemphasis", {"filter": (one.shape[0] + _ELEMENTS - 1) // _ELEMENTS})
        (y,) = c.native(
            "preemphasis", [one], [(DType.FLOAT, one.shape, "")], attrs=(border,), params=(coefficient, border),
            own=own, tiles=in_tiles("", "samples"), joint=Joint(SPECTRA),
        )  # fmt: skip
        y = c.cast(y, c.const("dtype"))
        return y if len(shape) == 1 else c.view(y, [ViewOp("insert", 1)], layout)

    @classmethod
    def stream_rule(cls, args: Mapping[str, Any], x: Spec, axis: int) -> StreamRule:
        least = 2 if args["border"] == "reflect" else 1  # the first output needs the second input
        return StreamRule(
            axis, lambda n: n if n >= least else 0, lambda n: n, lambda o, last: (max(o - 1, 0), min(o, 1))
        )

    def reference(self, row: RowContext, x: Any) -> Any:
        wide = x.reshape(-1).astype(np.float32)
        before = {"clamp": wide[:1], "zero": np.zeros(min(len(wide), 1), np.float32), "reflect": wide[1:2]}[
            row["border"]
        ]
        if len(wide) == 1 and row["border"] == "reflect":
            before = wide
        delayed = np.concatenate([before, wide[:-1]])
        y = wide - np.float32(row.number("preemph_coeff")) * delayed
        return cast_array(y.reshape(x.shape), row["dtype"])
