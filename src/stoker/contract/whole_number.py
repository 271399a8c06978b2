# SPDX-License-Identifier: Apache-2.0
"""Whole numbers from users: Python's and NumPy's integers, and other objects with ``__index__``."""

from __future__ import annotations

import operator
from typing import Any


def as_whole_number(value: Any) -> int | None:
    """Return ``value`` as an int; None for everything else: a float (even 2.0), a text, a bool.

    >>> import numpy as np
    >>> as_whole_number(np.int64(3)), as_whole_number(3), as_whole_number(True), as_whole_number(3.0)
    (3, 3, None, None)
    """
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except Exception:  # noqa: BLE001 - a user's `__index__` may raise anything
        return None


def is_seed(value: Any) -> bool:
    """Return whether ``value`` is a seed: a whole number from 0 to 2**64 - 1."""
    number = as_whole_number(value)
    return number is not None and 0 <= number < 1 << 64
