# SPDX-License-Identifier: Apache-2.0
"""``reductions.std_dev``."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._reduction import Deviation


class StdDev(Deviation, name="reductions.std_dev"):
    """Compute the standard deviation from a given mean along some axes. Inputs: data of any type; the mean.

    The mean is one number, or one per element of the output. Output: float32. The sum is in double, in a fixed order
    (in 32 lanes).
    """

    what = "std_dev"
    cases = ({}, {"ddof": 1})

    def finish(self, variance: Any) -> Any:
        return np.sqrt(variance)
