# SPDX-License-Identifier: Apache-2.0
"""A pipeline that scales arrays of other frameworks, and its results."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker import fn, pipeline_def, types

ROWS = 6


@pipeline_def(batch_size=ROWS, num_threads=2, device_id=0)
def scaled(no_copy: bool = True) -> Any:
    x = fn.external_source(name="x", device="gpu", no_copy=no_copy, layout="HWC")
    return fn.crop_mirror_normalize(x, mean=[1.0, 2.0, 3.0], std=[2.0], dtype=types.FLOAT16, output_layout="HWC")


def images(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (ROWS, 20, 30, 3), np.uint8)


def want(x: np.ndarray) -> np.ndarray:
    return ((x.astype(np.float32) - np.float32([1, 2, 3])) * np.float32(0.5)).astype(np.float16)
