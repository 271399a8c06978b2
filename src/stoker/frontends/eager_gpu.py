# SPDX-License-Identifier: Apache-2.0
"""GPUs of eager calls: one open GPU per process and number, and arrays in its memory as inputs."""

from __future__ import annotations

import atexit
import os
import threading
from typing import TYPE_CHECKING, Any

from .._import_lock import IMPORT_LOCK
from ..contract.batch import Batch
from ..contract.errors import ArgumentError, DataError
from ..contract.feed import GpuArray
from ..contract.text import brief
from ..contract.types import DType
from ..contract.whole_number import as_whole_number
from ..native import _native
from ..readers._gpu_arrays import as_gpu_array
from ..readers._gpu_arrays import is_on_gpu as _is_foreign_on_gpu
from .constants import Constant
from .launcher import find_process_gpu

if TYPE_CHECKING:
    from ..executor.run import OpenGpu


class _OpenGpus:
    """GPUs that eager calls have used. They stay open until the process ends."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by_number: dict[int, Any] = {}

    def of(self, number: int) -> OpenGpu:
        """Return a GPU.

        Raises:
            DeviceError: the GPU cannot be used.
        """
        with IMPORT_LOCK:
            from ..device.gpu import Gpu

        with self._lock:
            if number not in self._by_number:
                self._by_number[number] = Gpu.open(number)
            return self._by_number[number]  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close what operators share on the GPUs, at the end of the process, while the driver still works."""
        with self._lock:
            gpus = list(self._by_number.values())
            self._by_number.clear()
        for gpu in gpus:
            gpu.close_shared()

    def reset(self) -> None:
        """Forget everything, in a child process, which cannot use the GPUs of its parent."""
        self.__dict__ = _OpenGpus().__dict__


GPUS = _OpenGpus()
atexit.register(GPUS.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=GPUS.reset)


def take_gpu(name: str, arguments: dict[str, Any]) -> OpenGpu | None:
    """Remove ``device`` and ``device_id`` from the arguments of a call, and return its GPU; None for the CPU.

    Raises:
        ArgumentError: an argument is wrong.
        DeviceError: the GPU cannot be used.
    """
    device, number = arguments.pop("device", None), arguments.pop("device_id", None)
    if device is not None and not (isinstance(device, str) and device in ("cpu", "gpu", "mixed")):
        raise ArgumentError(f"`eager.{name}`: expected cpu, gpu or mixed as `device`, got {brief(device)}")
    given = as_whole_number(number)
    if number is not None and (given is None or given < 0):
        raise ArgumentError(f"`eager.{name}`: expected the number of a GPU as `device_id`, got {brief(number)}")
    if device in (None, "cpu"):
        if number is not None:
            raise ArgumentError(f'`eager.{name}`: expected `device_id` with `device="gpu"`, got {brief(device)}')
        return None
    return GPUS.of(find_process_gpu() if given is None else given)


def read_for_gpu(x: Any, gpu: OpenGpu) -> tuple[GpuArray | list[GpuArray], str] | None:
    """Return arrays in a GPU's memory as a run reads them, with the names of their axes.

    Args:
        x: an array, a constant with a layout, a list of arrays, or a batch.
        gpu: the GPU of the call.

    Returns:
        One array that serves all rows, or one array per row. None if the data are in host memory.

    Raises:
        DataError: the arrays are on another GPU, or of an unknown element type.
        ArgumentError: some arrays are in host memory.
    """
    if isinstance(x, Constant):  # an array in a GPU's memory with a layout
        return (_read(x.value, gpu), x.layout) if is_on_gpu(x.value) else None
    if isinstance(x, Batch):
        return ([_read(row, gpu) for row in x], x.layout) if x.device == "gpu" else None
    if isinstance(x, (list, tuple)):
        on_gpu = [is_on_gpu(row) for row in x]
        if not any(on_gpu):
            return None
        if not all(on_gpu):
            raise ArgumentError("expected all samples in host memory, or all in the GPU's memory")
        return [_read(row, gpu) for row in x], ""
    return (_read(x, gpu), "") if is_on_gpu(x) else None


def is_on_gpu(x: Any) -> bool:
    """Return whether ``x`` is an array in a GPU's memory."""
    return isinstance(x, _native.gpu.DeviceArray) or _is_foreign_on_gpu(x)


def _read(x: Any, gpu: OpenGpu) -> GpuArray:
    if not isinstance(x, _native.gpu.DeviceArray):
        return as_gpu_array(x, gpu.device, copies=False)
    if x.device_id != gpu.device.number:
        raise DataError(f"expected an array on GPU {gpu.device.number}, that of the call, got one on {x.device_id}")
    dtype = DType(x.dtype)
    strides = [dtype.size]
    for extent in x.shape[:0:-1]:
        strides.append(strides[-1] * extent)
    return GpuArray(x.pointer, tuple(x.shape), tuple(strides[: len(x.shape)][::-1]), dtype, x, None)
