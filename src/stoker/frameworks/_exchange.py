# SPDX-License-Identifier: Apache-2.0
"""Exchange of outputs with frameworks by DLPack, without a copy."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError
from ..contract.types import DType
from ..native import _native

_ALIGNMENT = 64  # of the engine's blocks; TensorFlow aborts on less, JAX copies


def as_dlpack(array: Any, dtype: DType) -> Any:
    """Return an output's array as an object with DLPack's protocol, over the same memory.

    The object and its capsules keep the memory alive. A consumer may release them on any thread.

    Args:
        array: a NumPy array that the engine delivered, or an array on a GPU, which has the protocol already.
        dtype: the output's type. NumPy holds bfloat16 as bits, and the result says that they are bfloat16.
    """
    return _native.exchange(array, int(dtype)) if isinstance(array, np.ndarray) else array


def as_capsule(array: Any, dtype: DType) -> Any:
    """Return :func:`as_dlpack` as an unversioned capsule, for frameworks that take nothing else.

    Arrays in host memory must be aligned (see :func:`empty`).
    """
    if isinstance(array, np.ndarray) and array.ctypes.data % _ALIGNMENT and array.size:
        raise ValueError(f"expected memory at a multiple of {_ALIGNMENT} bytes")
    return as_dlpack(array, dtype).__dlpack__()


def as_labels(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return integers, one per row, as a new aligned int64 array ``(N,)``."""
    memory = np.empty(array.size + _ALIGNMENT // 8, np.int64)
    start = -memory.ctypes.data % _ALIGNMENT // 8
    labels = memory[start : start + array.size]
    labels[:] = array.reshape(-1)
    return labels


def require_type(dtype: DType, substitutes: Mapping[DType, DType], framework: str) -> None:
    """Raise ArgumentError for an output of a type that a framework lacks.

    Args:
        dtype: the output's type.
        substitutes: the types that the framework lacks, each with the type to cast to.
        framework: the framework's name, for the error.
    """
    if dtype in substitutes:
        raise ArgumentError(
            f"`Loader`: expected a type that {framework} has, got an output of {dtype}. Add `fn.cast(x, "
            f"dtype=types.{substitutes[dtype].name})` to the pipeline"
        )


def empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return a new array at a multiple of 64 bytes, as the engine's blocks are."""
    count = math.prod(shape) * dtype.itemsize
    memory = np.empty(count + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    return memory[start : start + count].view(dtype).reshape(shape)
