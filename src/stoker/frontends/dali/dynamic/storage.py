# SPDX-License-Identifier: Apache-2.0
"""Memory of the imperative mode's tensors: NumPy arrays, and arrays in a GPU's memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....contract.batch import Batch as Rows
from ....contract.errors import ArgumentError
from ....contract.feed import is_contiguous
from ....contract.text import brief
from ....contract.types import DType as TypeId
from ....native import _native
from ....readers._gpu_arrays import as_gpu_array
from ... import eager
from ...eager_gpu import GPUS, is_on_gpu
from ..errors import error_class
from .devices import CPU, Device

DeviceArray = _native.gpu.DeviceArray


def find_device(data: Any) -> Device | None:
    """Return the GPU in whose memory an array of any library is; None for other data."""
    if not is_on_gpu(data):
        return None
    if isinstance(data, DeviceArray):
        return Device("gpu", max(data.device_id, 0))
    if hasattr(data, "__dlpack_device__"):
        return Device("gpu", int(data.__dlpack_device__()[1]))
    return Device("gpu")


def take(data: Any, device: Device) -> Any:
    """Return an array of any library in the memory of ``device`` as an array that shares the memory, if possible.

    The work that writes it, on its library's current stream, is done on return. Elements that are not contiguous are
    copied.
    """
    gpu = open_gpu(device)
    if isinstance(data, DeviceArray):
        if data.device is gpu.device:
            return data
        return _native.gpu.wrap(gpu.device, data.pointer, data.dtype, data.shape, data, None)
    found = as_gpu_array(data, gpu.device, copies=False)
    if is_contiguous(found.shape, found.strides, found.dtype.size):
        return _native.gpu.wrap(gpu.device, found.address, int(found.dtype), found.shape, data, found.stream)
    copies = eager.batches_of("copy", [data], {"device": "gpu", "device_id": device.device_id}, 1)
    return copies[0][0]


def open_gpu(device: Device) -> Any:
    """Return the open GPU of a device.

    Raises:
        DeviceError: the GPU cannot be used.
    """
    assert device.device_id is not None
    return GPUS.of(device.device_id)


def to_host(array: Any) -> Any:
    """Return an array in host memory: the array itself, or a copy."""
    if not isinstance(array, DeviceArray):
        return array
    return np.frombuffer(array.to_host(), TypeId(array.dtype).numpy).reshape(array.shape).copy()


def move(array: Any, dtype: TypeId, to: Device) -> Any:
    """Return a copy of an array in the memory of a device."""
    if to == CPU:
        return np.array(to_host(array))
    gpu = open_gpu(to)
    if isinstance(array, DeviceArray) and array.device is gpu.device:
        return _native.gpu.stack([array]).row(0)
    return _native.gpu.upload(gpu.device, np.require(to_host(array), requirements="C"), int(dtype))


def move_rows(rows: Rows, to: Device) -> Rows:
    """Return a copy of a batch in the memory of a device."""
    if rows.is_dense:
        data: Any = move(rows.whole, rows.dtype, to)
    else:
        data = [move(row, rows.dtype, to) for row in rows]
    return Rows(data, rows.dtype, rows.layout, device=to.device_type)


def stack_rows(rows: Sequence[Any]) -> Any:
    """Return rows of one shape as one array."""
    return _native.gpu.stack(list(rows)) if isinstance(rows[0], DeviceArray) else np.stack(rows)


def index_arguments(ranges: Sequence[Any], rank: int) -> tuple[str, list[Any]]:
    """Return subscripts as the argument and the inputs of the operator that applies them.

    Args:
        ranges: whole numbers, slices and at most one ellipsis; numbers may be anything that is an input.
        rank: number of axes.
    """
    given = sum(r is not ... for r in ranges)
    if sum(r is ... for r in ranges) > 1 or given > rank:
        raise ArgumentError(f"expected at most {rank} subscripts and one ellipsis, got {len(ranges)}")
    spec: list[str] = []
    numbers: list[Any] = []
    for r in ranges:
        if r is ...:
            spec += ["nn:1"] * (rank - given)
        elif isinstance(r, slice):
            ends = (r.start, r.stop)
            numbers += [x for x in ends if x is not None]
            spec.append("".join("n" if x is None else "v" for x in ends) + f":{1 if r.step is None else int(r.step)}")
        else:
            spec.append("i")
            numbers.append(r)
    return ",".join(spec), numbers


def has_steps_of_rows(ranges: Sequence[Any]) -> bool:
    """Return whether a step is no number, so that it may differ between rows."""
    return any(isinstance(r, slice) and r.step is not None and not isinstance(r.step, int) for r in ranges)


def subscript(array: Any, layout: str, plain: Sequence[Any]) -> tuple[Any, str]:
    """Return elements of an array in host memory, and the names of the axes that stay.

    Args:
        array: the array.
        layout: names of its axes, or "".
        plain: Python's numbers, slices and at most one ellipsis.
    """
    if sum(r is ... for r in plain) > 1:
        raise ArgumentError("expected one ellipsis at most in subscripts")
    given = len(plain) - sum(r is ... for r in plain)
    if given > array.ndim:
        raise ArgumentError(f"expected at most {array.ndim} subscripts, got {given}")
    at = next((i for i, r in enumerate(plain) if r is ...), len(plain))
    full = [*plain[:at], *[slice(None)] * (array.ndim - given), *plain[at + 1 :]]
    try:
        found = array[tuple(full)]
    except IndexError as error:
        raise ArgumentError(f"expected subscripts inside of {array.shape}: {error}") from error
    names = "".join(name for name, r in zip(layout, full, strict=True) if isinstance(r, slice)) if layout else ""
    return found, names


def named(asked: str | None, own: str, rank: int) -> str:
    """Return the names of axes: as asked, or their own."""
    if asked is not None and not isinstance(asked, str):
        raise error_class(ArgumentError)(f"expected the names of the axes as `layout`, got {brief(asked)}")
    names = own if asked is None else asked
    if names and len(names) != rank:
        raise error_class(ArgumentError)(f"expected a `layout` of {rank} axes, got {brief(names)}")
    return names


def layout_of(layout: Any, rank: int) -> str:
    """Return the names of axes that an object of ``stoker.dali`` has."""
    names = layout() if callable(layout) else layout
    return names if isinstance(names, str) and len(names) == rank else ""
