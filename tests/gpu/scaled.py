# SPDX-License-Identifier: Apache-2.0
"""Pipelines that scale arrays, of other frameworks or of their own, and their results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stoker import fn, pipeline_def, types

ROWS = 6
BATCHES = 12


@pipeline_def(batch_size=ROWS, num_threads=2, device_id=0)
def scaled(no_copy: bool = True) -> Any:
    return scaled_by_operator(fn.external_source(name="x", device="gpu", no_copy=no_copy, layout="HWC"))


def scaled_by_operator(x: Any, dtype: Any = types.FLOAT16) -> Any:
    return fn.crop_mirror_normalize(x, mean=[1.0, 2.0, 3.0], std=[2.0], dtype=dtype, output_layout="HWC")


@pipeline_def(batch_size=ROWS, num_threads=2, device_id=0)
def numbered(dtype: Any = types.FLOAT16) -> Any:
    """Return scaled images on the GPU, and numbers of rows on the GPU and in host memory."""

    def batches() -> Iterator[Any]:
        for seed in range(BATCHES):
            yield images(seed), np.arange(ROWS, dtype=np.int32).reshape(ROWS, 1) + seed

    x, numbers = fn.external_source(source=batches, num_outputs=2, layout=["HWC", ""])
    return scaled_by_operator(x.gpu(), dtype), numbers.gpu(), numbers


def images(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (ROWS, 20, 30, 3), np.uint8)


def want(x: np.ndarray) -> np.ndarray:
    return ((x.astype(np.float32) - np.float32([1, 2, 3])) * np.float32(0.5)).astype(np.float16)
