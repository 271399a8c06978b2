# SPDX-License-Identifier: Apache-2.0
"""Arrays in a GPU's memory outside of a run: copies of host memory, and memory of other libraries."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...contract.errors import ArgumentError, DeviceError
from ...contract.feed import GpuArray, is_capsule, is_contiguous
from ...contract.text import brief
from ...contract.types import DType
from ...native import _native
from ...readers._gpu_arrays import as_gpu_array, is_on_gpu

_devices: dict[tuple[int, int], Any] = {}  # by process and number


def open_device(number: int) -> Any:
    """Return a GPU, which stays open until the process ends.

    Raises:
        DeviceError: the GPU cannot be used.
    """
    key = (os.getpid(), number)
    if key not in _devices:
        try:
            _devices[key] = _native.gpu.open_cuda(number)
        except _native.gpu.DeviceFailure as failure:
            raise DeviceError(f"GPU {number} cannot be used: {failure}") from failure
    return _devices[key]


def upload(array: Any, dtype: DType, number: int = 0) -> Any:
    """Return a copy of an array of host memory in the memory of a GPU."""
    return _native.gpu.upload(open_device(number), np.ascontiguousarray(array), int(dtype))


def read_device_array(data: Any, number: int = -1) -> Any:
    """Return an array of a GPU's memory that shares the memory of an object. It is complete on return.

    Args:
        data: a DLPack capsule, or an object with DLPack or CUDA's array interface.
        number: of the GPU, for an object that does not report it; -1: GPU 0.

    Raises:
        ArgumentError: the object has no memory of a GPU, or its elements are not contiguous.
        DataError: it is of another GPU, or no array of numbers.
    """
    if isinstance(data, _native.gpu.DeviceArray):
        return data
    if is_capsule(data):
        address, shape, strides, kind, number, owner = _native.gpu.read_dlpack(data)
        if kind < 0:
            raise ArgumentError("expected an array of numbers, got a capsule of another type")
        device = open_device(number)
        found = GpuArray(address, shape, strides, DType(kind), owner, device.order_stream)
    elif is_on_gpu(data):
        place = data.__dlpack_device__()[1] if hasattr(data, "__dlpack_device__") else max(number, 0)
        device = open_device(int(place))
        found = as_gpu_array(data, device, copies=False)
    else:
        raise ArgumentError(
            f"expected an object with DLPack or CUDA's array interface in a GPU's memory, got {brief(data)}. Copy data "
            "in host memory with `TensorCPU(x)._as_gpu()`"
        )
    if not is_contiguous(found.shape, found.strides, found.dtype.size):
        raise ArgumentError(f"expected contiguous elements, got strides of {found.strides} bytes")
    return _native.gpu.wrap(device, found.address, int(found.dtype), found.shape, found.owner, found.stream)


def stack(rows: Sequence[Any]) -> Any:
    """Return the arrays as one, or the list itself if their shapes differ."""
    if len({tuple(row.shape) for row in rows}) > 1:
        return list(rows)
    return _native.gpu.stack(list(rows))


def copy_to_device(arrays: Sequence[Any], address: Any, stream: Any, *, wait: bool) -> None:
    """Copy arrays, one after the other, to memory of their GPU.

    Args:
        arrays: arrays of a GPU's memory.
        address: a number, or a `ctypes.c_void_p`.
        stream: CUDA stream that the copies are ordered with: a number, a `ctypes.c_void_p`, an object with
            `cuda_stream`, `ptr` or `handle`; None: the copies are done on return.
        wait: return when the copies are done.
    """
    at, handle = int(getattr(address, "value", address) or 0), stream_handle(stream)
    for array in arrays:
        array.copy_to(at, handle, wait)
        at += int(np.prod(array.shape, dtype=np.int64)) * DType(array.dtype).size


def stream_handle(stream: Any) -> int | None:
    """Return the number of a CUDA stream; None without one."""
    if stream is None:
        return None
    for name in ("cuda_stream", "ptr", "handle", "value"):  # torch's, CuPy's, Numba's and ctypes'
        if hasattr(stream, name):
            return int(getattr(stream, name) or 0)
    return int(stream)
