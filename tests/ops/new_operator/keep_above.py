# SPDX-License-Identifier: Apache-2.0
"""``throwaway_keep_above``: an operator that exists only while tests/ops/new_operator/dry_run.sh runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...contract import samples
from ...contract.argument import arg
from ...contract.errors import UnsupportedError
from ...contract.lowering import Lowering
from ...contract.operator import Operator, RowContext
from ...contract.step import Launches, LaunchPass, Value
from ...contract.types import DType


class KeepAbove(Operator, name="throwaway_keep_above"):
    """Keep the values above a threshold. Input: float32 of one axis. Outputs: the values, and their count. Exact."""

    outputs = 2
    threshold = arg("float", 0.0, doc="Values above it are kept.", per_row=True)
    cases = ({}, {"threshold": 100.0})

    @classmethod
    def case_inputs(cls, case: Mapping[str, Any]) -> samples.Rows:
        return samples.each(*(samples.noise(n, (n,), "float32") for n in (300, 0, 1, 40)))

    def lower(self, c: Lowering, x: Value) -> tuple[Value, ...]:
        if x.dtype != DType.FLOAT or x.rank != 1:
            raise UnsupportedError(f"`throwaway_keep_above`: expected float32 of one axis, got {x.dtype}")
        threshold = c.scalar("threshold")
        own = Launches("KeepAbove", {"keep": LaunchPass(1, 128)})
        kernel, outputs = "throwaway_keep_above", [(x.dtype, (None,), x.layout)]  # None: the kernel counts
        return c.native(kernel, [x], outputs, params=(threshold,), own=own, max_output=x.shape[0])

    def reference(self, row: RowContext, x: Any) -> Any:
        selected = x[x > np.float32(row.number("threshold"))]
        return selected, np.asarray(len(selected), np.int32)
