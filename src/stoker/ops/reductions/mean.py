# SPDX-License-Identifier: Apache-2.0
"""``reductions.mean``."""

from __future__ import annotations

from ._reduction import FloatReduction


class Mean(FloatReduction, name="reductions.mean"):
    """Compute the mean along some axes. Input: any shape and type. Output: float32, or ``dtype``.

    The sum is in double, in a fixed order (in 32 lanes).
    """

    what = "mean"
    cases = ({}, {"axis_names": "HW", "keep_dims": True}, {"axes": (0, 1), "dtype": "uint8"})
