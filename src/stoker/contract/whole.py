# SPDX-License-Identifier: Apache-2.0
"""Whole numbers as users give them: Python's, NumPy's, and whatever else says that it is one."""

from __future__ import annotations

import operator
from typing import Any


def whole(value: Any) -> int | None:
    """``value`` as an int; None if it is something else: a float (also 2.0), a text, a bool.

    >>> import numpy as np
    >>> whole(np.int64(3)), whole(3), whole(True), whole(3.0)
    (3, 3, None, None)
    """
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None
