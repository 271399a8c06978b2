# SPDX-License-Identifier: Apache-2.0
"""Encoded images for the cases of decoders."""

from __future__ import annotations

import functools
import io

import numpy as np

from ...contract.samples import Rows, noise


@functools.cache
def image_files() -> Rows:
    """Return encoded images: JPEG, JPEG in several scans, PNG."""
    from PIL import Image

    rows: Rows = []
    for i, options in enumerate(
        (
            {"format": "JPEG", "subsampling": 2},
            {"format": "JPEG", "subsampling": 0, "progressive": True},
            {"format": "PNG"},
        )
    ):
        picture = np.kron(noise(i, (6, 8, 3)), np.ones((4, 4, 1), np.uint8))
        memory = io.BytesIO()
        Image.fromarray(picture).save(memory, **options)  # type: ignore[arg-type]
        rows.append((np.frombuffer(memory.getvalue(), np.uint8),))
    return rows
