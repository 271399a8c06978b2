# SPDX-License-Identifier: Apache-2.0
"""Sums whose bits do not depend on the version of Python."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from typing import Any


def sum_in_order(numbers: Iterable[Any], start: Any = 0.0) -> Any:
    """Return the sum of numbers, added from left to right.

    From Python 3.12 on, ``sum`` compensates the rounding of floats, so its last bits depend on the version.

    Args:
        numbers: numbers, or expressions.
        start: the number to which the first one is added.
    """
    return functools.reduce(operator.add, numbers, start)
