# SPDX-License-Identifier: Apache-2.0
"""Arrays in a GPU's memory from a user's source, read in place after the work that writes them."""

from __future__ import annotations

from typing import Any

from ..contract.errors import DataError
from ..contract.feed import GpuArray
from ..contract.types import DType
from ..native import _native

_CUDA, _MANAGED = 2, 13  # DLPack's kinds of devices
_FOR_GPU = 'Give the source `device="gpu"` and the pipeline a `device_id`'


def is_on_gpu(x: Any) -> bool:
    """Return whether ``x`` is an array in a GPU's memory, according to DLPack or else CUDA's array interface."""
    place = _native.gpu.place_of(x)  # libraries with a C interface answer six times faster than in Python
    if place is not None:
        return place[0] in (_CUDA, _MANAGED)
    if hasattr(x, "__dlpack_device__"):
        return int(x.__dlpack_device__()[0]) in (_CUDA, _MANAGED)
    return hasattr(x, "__cuda_array_interface__")


def as_gpu_array(x: Any, device: _native.gpu.Device | None, *, copies: bool) -> GpuArray:
    """Return ``x`` for a run on ``device``, ordered after the stream that writes it.

    Args:
        copies: copy the array with its own framework, on its current stream, because its owner may overwrite it.

    Raises:
        DataError: the run has no GPU or another one; the element type is unknown; or the array cannot be copied.
    """
    if device is None:
        raise DataError(f"expected data in host memory, got an array on a GPU. {_FOR_GPU}")
    if copies:
        x = _copied(x)
    return _by_dlpack(x, device) if hasattr(x, "__dlpack_device__") else _by_interface(x)


def _copied(x: Any) -> Any:
    if isinstance(x, _native.gpu.DeviceArray):  # a pipeline's output is not overwritten while it is referenced
        return x
    for name in ("clone", "copy"):  # torch's; CuPy's, Numba's and JAX's
        if hasattr(x, name):
            return getattr(x, name)()
    raise DataError(
        f"expected an array that can copy itself, got {type(x).__name__}. With `no_copy=True` it is read in place, and "
        "must not be written before its batch is delivered"
    )


def _by_dlpack(x: Any, device: _native.gpu.Device) -> GpuArray:
    stream = device.order_stream  # later work on this stream runs after x is complete
    shown = _native.gpu.exchange(x, device)  # libraries with a C interface take a tenth of the time
    if shown is None:
        number = int(x.__dlpack_device__()[1])
        _require_number(number, device)
        shown = _native.gpu.read_dlpack(x.__dlpack__(stream=stream))
    address, shape, strides, kind, number, owner = shown
    _require_number(number, device)
    if kind < 0:
        raise DataError(f"expected an array of numbers, got {getattr(x, 'dtype', type(x).__name__)}")
    return GpuArray(address, shape, strides, DType(kind), owner, stream)


def _require_number(number: int, device: _native.gpu.Device) -> None:
    if number != device.number:
        raise DataError(f"expected an array on GPU {device.number} (the pipeline's `device_id`), got one on {number}")


def _by_interface(x: Any) -> GpuArray:
    interface = x.__cuda_array_interface__
    shape = tuple(int(n) for n in interface["shape"])
    try:
        dtype = DType.of(interface["typestr"])
    except TypeError:
        raise DataError(f"expected an array of numbers, got one of {interface['typestr']!r}") from None
    if interface.get("mask") is not None:
        raise DataError("expected an array without a mask")
    strides = interface.get("strides")
    if strides is None:
        contiguous = [dtype.size]
        for extent in shape[:0:-1]:
            contiguous.insert(0, contiguous[0] * extent)
        strides = contiguous[: len(shape)]
    # Version 2 has no stream: its arrays are written on the legacy default stream.
    stream = interface.get("stream", 1 if interface.get("version", 0) < 3 else None)
    return GpuArray(int(interface["data"][0]), shape, tuple(map(int, strides)), dtype, x, stream)
