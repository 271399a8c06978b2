# SPDX-License-Identifier: Apache-2.0
"""Frames of videos: conversion of luma and chroma to RGB."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]

def convert(
    planes: Sequence[Bytes],
    pitches: Sequence[int],
    shifts: tuple[int, int],
    bits: int,
    matrix: tuple[float, float],
    full_range: bool,
    order: int,
    out: Bytes | npt.NDArray[np.uint16],
) -> None: ...
def resize(
    planes: Sequence[Bytes],
    pitches: Sequence[int],
    size: tuple[int, int],
    shifts: tuple[int, int],
    bits: int,
    matrix: tuple[float, float],
    full_range: bool,
    order: int,
    region: tuple[float, float, float, float],
    filters: tuple[int, int],
    antialias: bool,
    out: Bytes,
) -> None:
    """Convert and resize a frame of a size (height, width), as `convert` and the resampling of its result would.

    ``region``: (y0, y1, x0, x1) in pixels. ``filters``: numbers of the filters of the vertical and the horizontal axis.
    """
