# SPDX-License-Identifier: Apache-2.0
"""Images whose elements lie in memory in other orders."""

from __future__ import annotations

import numpy as np


def strided_forms(image: np.ndarray) -> list[np.ndarray]:
    """An image ``(height, width, channels)``, equal each time: backwards along each axis, by planes, by columns."""
    return [
        image[::-1].copy()[::-1],
        image[:, ::-1].copy()[:, ::-1],
        image[:, :, ::-1].copy()[:, :, ::-1],
        np.ascontiguousarray(image.transpose(2, 0, 1)).transpose(1, 2, 0),
        np.asfortranarray(image),
    ]
