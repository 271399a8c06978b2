# SPDX-License-Identifier: Apache-2.0
"""Copies in host memory of arrays in a GPU's memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..contract.errors import ArgumentError
from ..contract.feed import GpuArray
from ..contract.types import DType
from ..native import _native


def copy_to_host(x: GpuArray, device: _native.gpu.Device) -> Any:
    """Return a copy of an array in a GPU's memory as a NumPy array, made after the work of the array's stream.

    Raises:
        ArgumentError: it is stored backward along an axis.
    """
    if any(stride < 0 for stride in x.strides):
        raise ArgumentError(f"expected an array that is not stored backward, got strides of {x.strides} bytes")
    if 0 in x.shape:
        return np.empty(x.shape, x.dtype.numpy)
    bytes_ = x.dtype.size + sum((n - 1) * stride for n, stride in zip(x.shape, x.strides, strict=True))
    memory = _native.gpu.wrap(device, x.address, int(DType.UINT8), (bytes_,), x.owner, x.stream)
    return np.ndarray(x.shape, x.dtype.numpy, memory.to_host(), strides=x.strides)


def copy_out(x: Any) -> Any:
    """Return a copy of a run's array in a GPU's memory as a NumPy array."""
    return np.frombuffer(x.to_host(), DType(x.dtype).numpy).reshape(x.shape).copy()
