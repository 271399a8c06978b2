# SPDX-License-Identifier: Apache-2.0
"""Histograms and lookups of 8-bit images, on every instruction set and in every layout, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from stoker import eager, types


def equalized(plane: np.ndarray) -> np.ndarray:
    """Return OpenCV's ``equalizeHist`` of a plane."""
    counts = np.bincount(plane.ravel(), minlength=256)
    used = np.flatnonzero(counts)
    if len(used) <= 1:
        return plane
    scale = np.float32(255) / np.float32(plane.size - counts[used[0]])
    counts[used[0]] = 0
    return np.rint(np.cumsum(counts).astype(np.float32) * scale).clip(0, 255).astype(np.uint8)[plane]


def check(image: np.ndarray, layout: str) -> None:
    result = np.asarray(eager.equalize(types.Constant(image, layout=layout)))
    channel = layout.index("C")
    want = np.stack([equalized(plane) for plane in np.moveaxis(image, channel, 0)], channel)
    np.testing.assert_array_equal(result, want)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("size", [(1, 1), (1, 2), (3, 5), (2, 63), (2, 64), (5, 65), (40, 129), (3, 1500)])
def test_layouts(isa, channels, size):
    rng = np.random.default_rng(channels * size[1])
    spread = rng.normal(120, 40, (*size, channels)).clip(0, 255).astype(np.uint8)
    runs = np.sort(spread, axis=1)
    for image in (spread, runs):
        check(image, "HWC")
        check(np.ascontiguousarray(np.moveaxis(image, 2, 0)), "CHW")
        check(image[:, ::-1], "HWC")
        check(np.repeat(image, 2, axis=2)[:, :, ::2], "HWC")
