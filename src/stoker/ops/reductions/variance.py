# SPDX-License-Identifier: Apache-2.0
"""``reductions.variance``."""

from __future__ import annotations

from ._reduction import Deviation


class Variance(Deviation, name="reductions.variance"):
    """Compute the variance from a given mean along some axes. Inputs: data of any type; the mean.

    The mean is one number, or one per element of the output. Output: float32. The sum is in double, in a fixed order
    (in 32 lanes).
    """

    what = "variance"
    cases = ({}, {"ddof": 1})
