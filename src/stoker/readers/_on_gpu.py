# SPDX-License-Identifier: Apache-2.0
"""Arrays that a user's source gives in a GPU's memory: read in place, after the work that makes them."""

from __future__ import annotations

from typing import Any

from ..contract.errors import DataError
from ..contract.feed import OnGpu
from ..contract.types import DType
from ..native import _native

_CUDA, _MANAGED = 2, 13  # DLPack's kinds of devices
_FOR_GPU = 'Give the source `device="gpu"` and the pipeline a `device_id`'


def lies_on_gpu(x: Any) -> bool:
    """Whether ``x`` is an array in a GPU's memory, by DLPack's word or else CUDA's array interface."""
    place = _native.gpu.place_of(x)  # in C where the library can: a sixth of what asking it in Python takes
    if place is not None:
        return place[0] in (_CUDA, _MANAGED)
    if hasattr(x, "__dlpack_device__"):
        return int(x.__dlpack_device__()[0]) in (_CUDA, _MANAGED)
    return hasattr(x, "__cuda_array_interface__")


def take(x: Any, device: _native.gpu.Device | None, *, copies: bool) -> OnGpu:
    """``x`` for a run on ``device``, in the order of the stream that makes it.

    Args:
        copies: its owner may write it again at once: it is copied by its own framework, on its current stream.

    Raises:
        DataError: the run has no GPU, or another one; elements of an unknown type; or it cannot be copied.
    """
    if device is None:
        raise DataError(f"expected data in host memory, got an array on a GPU. {_FOR_GPU}")
    if copies:
        x = _copied(x)
    return _by_dlpack(x, device) if hasattr(x, "__dlpack_device__") else _by_interface(x)


def _copied(x: Any) -> Any:
    if isinstance(x, _native.gpu.DeviceArray):  # a pipeline's output: nothing is written there while it is held
        return x
    for name in ("clone", "copy"):  # torch's; CuPy's, Numba's and JAX's
        if hasattr(x, name):
            return getattr(x, name)()
    raise DataError(
        f"expected an array that can copy itself, got {type(x).__name__}. With `no_copy=True` it is read in place, and "
        "must not be written before its batch is delivered"
    )


def _by_dlpack(x: Any, device: _native.gpu.Device) -> OnGpu:
    stream = device.order_stream  # whatever comes after this on the stream, comes after x was made
    shown = _native.gpu.exchange(x, device)  # in C where the library can, which costs a tenth
    if shown is None:
        number = int(x.__dlpack_device__()[1])
        _require_number(number, device)
        shown = _native.gpu.read_dlpack(x.__dlpack__(stream=stream))
    address, shape, strides, kind, number, owner = shown
    _require_number(number, device)
    if kind < 0:
        raise DataError(f"expected an array of numbers, got {getattr(x, 'dtype', type(x).__name__)}")
    return OnGpu(address, shape, strides, DType(kind), owner, stream)


def _require_number(number: int, device: _native.gpu.Device) -> None:
    if number != device.number:
        raise DataError(f"expected an array on GPU {device.number} (the pipeline's `device_id`), got one on {number}")


def _by_interface(x: Any) -> OnGpu:
    told = x.__cuda_array_interface__
    shape = tuple(int(n) for n in told["shape"])
    try:
        dtype = DType.of(told["typestr"])
    except TypeError:
        raise DataError(f"expected an array of numbers, got one of {told['typestr']!r}") from None
    if told.get("mask") is not None:
        raise DataError("expected an array without a mask")
    strides = told.get("strides")
    if strides is None:
        found = [dtype.size]
        for extent in shape[:0:-1]:
            found.insert(0, found[0] * extent)
        strides = found[: len(shape)]
    # Version 2 knows no streams: its arrays are made on the legacy default stream.
    stream = told.get("stream", 1 if told.get("version", 0) < 3 else None)
    return OnGpu(int(told["data"][0]), shape, tuple(map(int, strides)), dtype, x, stream)
