# SPDX-License-Identifier: Apache-2.0
"""Inputs for running operators' ``cases`` in tests (``Operator.case_inputs``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Rows = list[tuple[Any, ...]]  # per row one array per input

SHAPES = {"HWC": (13, 17, 3), "CHW": (3, 11, 19), "FHWC": (2, 13, 16, 3)}


def noise(seed: int, shape: Sequence[int], dtype: str = "uint8") -> Array:
    """Return values of an image in its type's usual range."""
    rng = np.random.default_rng(seed)
    if dtype.startswith("float"):
        return rng.uniform(-20, 280, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -40_000), min(info.max, 80_000), shape, dtype=dtype, endpoint=True)


def images(dtype: str = "uint8", layout: str = "HWC", copies: int = 1) -> Rows:
    """Return three rows of images of different sizes; each row has ``copies`` of one size."""
    shape = SHAPES[layout]
    rows = []
    for i in range(3):
        sizes = [n + i * {"H": 4, "W": 3}.get(a, 0) for n, a in zip(shape, layout, strict=True)]
        rows.append(tuple(noise(7 * i + k, sizes, dtype) for k in range(copies)))
    return rows


def each(*arrays: Any) -> Rows:
    """Return a row for each array; a tuple is a row of several inputs."""
    return [tuple(np.asarray(a) for a in (row if isinstance(row, tuple) else (row,))) for row in arrays]
