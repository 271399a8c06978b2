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
