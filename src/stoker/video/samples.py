# SPDX-License-Identifier: Apache-2.0
"""Types of audio samples: the definition of their conversions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contract.types import DType


def converted(x: Any, dtype: DType, downmix: bool) -> Any:
    """Return samples in another type, or their means over the channels.

    Args:
        x: ``(frames, channels)``: floats, or integers of 32 bits at full scale.
        dtype: FLOAT, INT16 or INT32.
        downmix: return the means, ``(frames,)``.
    """
    as_float = x.astype(np.float32) * np.float32(1 if x.dtype.kind == "f" else 2.0**-31)
    if downmix and x.shape[1] > 1:
        part = np.float32(1) / np.float32(x.shape[1])
        total = as_float[:, 0] * part
        for channel in range(1, x.shape[1]):
            total = total + as_float[:, channel] * part
        return quantized(total, dtype)
    if x.dtype.kind == "f" or dtype == DType.FLOAT:
        result = quantized(as_float, dtype)
    else:
        result = (x >> (32 - 8 * dtype.size)).astype(dtype.numpy)
    return result[:, 0] if downmix else result


def quantized(x: Any, dtype: DType) -> Any:
    """Return floats as numbers of a type: 1 becomes the largest integer; halves to even, saturated, NaN becomes 0."""
    if dtype == DType.FLOAT:
        return x
    most = float(np.iinfo(dtype.numpy).max)
    scaled = np.nan_to_num(x.astype(np.float64) * most, nan=0.0, posinf=most, neginf=-most - 1)
    return np.rint(scaled).clip(-most - 1, most).astype(dtype.numpy)
