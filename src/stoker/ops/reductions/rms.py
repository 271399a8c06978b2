# SPDX-License-Identifier: Apache-2.0
"""``reductions.rms``."""

from __future__ import annotations

from typing import Any

import numpy as np

from .mean_square import MeanSquare


class Rms(MeanSquare, name="reductions.rms"):
    """Compute the root of the mean of the squares along some axes. Input: any shape and type. Output: float32.

    The sum is in double, in a fixed order (in 32 lanes).
    """

    what = "rms"

    def finish(self, mean: Any) -> Any:
        return np.sqrt(mean)
