# SPDX-License-Identifier: Apache-2.0
"""Images with other memory layouts."""

from __future__ import annotations

import numpy as np


def strided_forms(image: np.ndarray) -> list[np.ndarray]:
    """Return equal images ``(height, width, channels)``: reversed along each axis, planar, column-major."""
    return [
        image[::-1].copy()[::-1],
        image[:, ::-1].copy()[:, ::-1],
        image[:, :, ::-1].copy()[:, :, ::-1],
        np.ascontiguousarray(image.transpose(2, 0, 1)).transpose(1, 2, 0),
        np.asfortranarray(image),
    ]
