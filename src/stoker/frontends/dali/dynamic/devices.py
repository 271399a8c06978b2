# SPDX-License-Identifier: Apache-2.0
"""Devices of the imperative mode: the CPU and GPUs by number."""

from __future__ import annotations

import threading
from typing import Any, ClassVar

from ....contract.errors import ArgumentError, DeviceError
from ....contract.text import brief
from ....contract.whole_number import as_whole_number
from ....native import _native
from ...launcher import find_process_gpu
from ..errors import error_class

_CPU_KINDS, _GPU_KINDS = (1, 3), (2, 13)  # DLPack's: host and pinned memory; CUDA's own and managed memory


def remove_last(entered: list[Any], one: Any) -> None:
    """Remove the last occurrence of an object from the entered ones; loops over readers may end in any order."""
    for i in reversed(range(len(entered))):
        if entered[i] is one:
            del entered[i]
            return


def count_gpus() -> int:
    """Return the number of CUDA GPUs that this process sees."""
    return int(_native.gpu.count_cuda())


class Device:
    """The CPU or a GPU, as the place of tensors and operators. In a ``with`` block it is the current device.

    Attributes:
        device_type: "cpu" or "gpu".
        device_id: number of the GPU; None for the CPU.
    """

    CPU: ClassVar[Device]

    def __init__(self, name: str, device_id: int | None = None) -> None:
        """Take a device by name; `device` takes other objects, too.

        Args:
            name: "cpu", "gpu" or "gpu:<number>"; "cuda" means "gpu".
            device_id: number of the GPU; by default that of the current GPU.

        Raises:
            ArgumentError: there is no such device.
            DeviceError: the machine has no GPU.
        """
        kind, _, number = name.partition(":") if isinstance(name, str) else ("", "", "")
        kind = "gpu" if kind == "cuda" else kind
        if kind not in ("cpu", "gpu") or (number and not number.isdecimal()):
            raise error_class(ArgumentError)(f'expected a device, "cpu", "gpu" or "gpu:0", got {brief(name)}')
        if number and device_id is not None:
            raise error_class(ArgumentError)(f"expected one number of a GPU, got {brief(name)} and {brief(device_id)}")
        given = int(number) if number else device_id
        self.device_type = kind
        self.device_id = self.default_device_id(kind) if given is None else _number(kind, given)

    @staticmethod
    def current() -> Device:
        """Return the device of the innermost block of this thread, else the default GPU, else the CPU."""
        if _of_thread.devices:
            return _of_thread.devices[-1]
        return Device("gpu") if count_gpus() else Device.CPU

    @staticmethod
    def default_device_id(device_type: str) -> int | None:
        """Return the number of the device that is meant without one: None for the CPU, that of the current GPU.

        Args:
            device_type: "cpu" or "gpu".
        """
        if device_type == "cpu":
            return None
        if device_type != "gpu":
            raise error_class(ArgumentError)(f'expected "cpu" or "gpu", got {brief(device_type)}')
        inner = next((d.device_id for d in reversed(_of_thread.devices) if d.device_type == "gpu"), None)
        if inner is not None:
            return inner
        if not count_gpus():
            raise error_class(DeviceError)("the machine has no CUDA GPU that this process may use")
        return find_process_gpu()

    @staticmethod
    def type_from_dlpack(dev_type: Any) -> str:
        """Return "cpu" or "gpu" for DLPack's kind of a device.

        Args:
            dev_type: the kind.
        """
        if int(dev_type) in _CPU_KINDS:
            return "cpu"
        if int(dev_type) in _GPU_KINDS:
            return "gpu"
        raise error_class(ArgumentError)(f"expected memory of the CPU or a CUDA GPU, got DLPack's kind {dev_type}")

    @staticmethod
    def from_dlpack(dlpack_device: Any) -> Device:
        """Return the device of an object with ``__dlpack_device__``.

        Args:
            dlpack_device: the object.
        """
        kind, number = dlpack_device.__dlpack_device__()
        name = Device.type_from_dlpack(kind)
        return Device(name, None if name == "cpu" else int(number))

    def __enter__(self) -> Device:
        _of_thread.devices.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        remove_last(_of_thread.devices, self)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Device):
            return NotImplemented
        return (self.device_type, self.device_id) == (other.device_type, other.device_id)

    def __hash__(self) -> int:
        return hash((self.device_type, self.device_id))

    def __str__(self) -> str:
        return self.device_type if self.device_id is None else f"{self.device_type}:{self.device_id}"

    def __repr__(self) -> str:
        number = "" if self.device_id is None else f", device_id={self.device_id}"
        return f"Device(device_type={self.device_type!r}{number})"


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.devices: list[Device] = []


_of_thread = _OfThread()


def _number(kind: str, given: Any) -> int:
    number = as_whole_number(given)
    if kind == "cpu":
        raise error_class(ArgumentError)(f'expected no number with the device "cpu", got {brief(given)}')
    if number is None or not 0 <= number < max(count_gpus(), 1):
        text = f"expected the number of one of {count_gpus()} GPUs, got {brief(given)}"
        raise error_class(ArgumentError)(text)
    if not count_gpus():
        raise error_class(DeviceError)("the machine has no CUDA GPU that this process may use")
    return number


CPU = Device.CPU = Device("cpu")


def device(obj: Any, id: int | None = None) -> Any:
    """Return a device.

    Args:
        obj: a device, its name, or a device of PyTorch's. None is returned as it is.
        id: number of the GPU, with a name.

    Raises:
        TypeError: the object is no device.
    """
    if obj is None:
        return None
    if isinstance(obj, str):
        return Device(obj, id)
    is_torchs = type(obj).__module__ == "torch" and type(obj).__name__ == "device"
    if not isinstance(obj, Device) and not is_torchs:
        raise TypeError(f"expected a device or its name, got {type(obj).__name__}")
    if id is not None:
        raise error_class(ArgumentError)(f"expected no `id` with a device, got {brief(id)}")
    return obj if isinstance(obj, Device) else Device(obj.type, obj.index)
