# SPDX-License-Identifier: Apache-2.0
"""Border modes: the values beyond the edges of an image."""

from __future__ import annotations

from typing import Any

import numpy as np

# DALI's border names, in the order of the native numbers (native/shared/border.hpp), with NumPy's names.
BORDERS = {
    "reflect_101": "reflect",
    "reflect_1001": "symmetric",
    "wrap": "wrap",
    "clamp": "edge",
    "constant": "constant",
}


def border_positions(at: Any, size: int, border: str) -> Any:
    """Return the element that a border mode shows at each position; for a constant, the nearest element."""
    if border == "wrap":
        return at % size
    if border == "reflect_1001":
        return np.minimum(at % (2 * size), 2 * size - 1 - at % (2 * size))
    if border == "reflect_101":
        period = max(2 * size - 2, 1)
        return np.minimum(at % period, period - at % period) if size > 1 else np.zeros_like(at)
    return at.clip(0, size - 1)
