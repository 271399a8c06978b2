# SPDX-License-Identifier: Apache-2.0
"""``reductions.mean_square``."""

from __future__ import annotations

from typing import Any

from ._reduction import FloatReduction


class MeanSquare(FloatReduction, name="reductions.mean_square"):
    """Compute the mean of the squares along some axes. Input: any shape and type. Output: float32, or ``dtype``.

    The sum is in double, in a fixed order (in 32 lanes).
    """

    what = "mean_square"
    cases = ({}, {"axis_names": "HW", "keep_dims": True})

    def term(self, values: Any) -> Any:
        return values * values
