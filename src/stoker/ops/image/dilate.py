# SPDX-License-Identifier: Apache-2.0
"""``experimental.dilate``."""

from __future__ import annotations

from ._windows import Morphology


class Dilate(Morphology, name="experimental.dilate"):
    """Replace every pixel by the largest one of a rectangle around it. Input: HW, HWC, CHW or these with a leading F;
    numbers of up to 32 bits. Output: the same.

    Exact: the bytes of OpenCV's ``dilate`` with a rectangle. Channels and frames are independent. NaNs count as numbers
    beyond the infinity of their sign. In DALI the operator runs on GPUs only.
    """

    largest = True
