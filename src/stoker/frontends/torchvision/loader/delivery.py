# SPDX-License-Identifier: Apache-2.0
"""Destination of batches: the arguments of :func:`stoker.torchvision.enable`, and the open destinations."""

from __future__ import annotations

import functools

import torch

from .... import settings
from ....contract.errors import ArgumentError, DeviceError
from ....contract.warning import warn
from ..gpu.destination import Destination

_device: torch.device | None = None  # None: host memory
_destinations: dict[tuple[torch.device, int], Destination] = {}


def choose(device: str, without_gpu: str | None) -> None:
    """Set the device on which later batches are delivered; see :func:`stoker.torchvision.enable`."""
    global _device
    policy = settings.without_gpu() if without_gpu is None else without_gpu
    if policy not in ("error", "cpu"):
        raise ArgumentError(f'`stoker.torchvision.enable`: expected `without_gpu` "error" or "cpu", got {policy!r}')
    requested = _parsed(device)
    if requested.type == "cpu":
        _device = None
        return
    missing = _missing(requested)
    if missing is None:
        _device = requested
        return
    text = f"`stoker.torchvision.enable`: expected a GPU for {device!r}, got {missing}"
    if policy != "cpu":
        raise DeviceError(
            f'{text}. Leave the device out, or give `without_gpu="cpu"` (or set STOKER_WITHOUT_GPU=cpu in the '
            "environment): batches are then delivered on the CPU"
        )
    warn(f"{text}. Batches are delivered on the CPU, with the same values", stacklevel=3)
    _device = None


def _parsed(device: str) -> torch.device:
    try:
        parsed = torch.device(device)
    except RuntimeError:
        parsed = torch.device("meta")
    if parsed.type not in ("cpu", "cuda", *_others()):
        raise ArgumentError(
            f'`stoker.torchvision.enable`: expected `device` "cpu", "cuda" or "cuda:" and a number, got {device!r}. '
            f"Other devices of torch ({', '.join(_others())}) need the import of their package before this call"
        )
    return parsed


def _others() -> tuple[str, ...]:
    """Return the types of devices to which torch copies the batches."""
    return tuple(sorted({"mps", "npu", "xpu", torch._C._get_privateuse1_backend_name()}))


def _missing(device: torch.device) -> str | None:
    """Return the reason why torch cannot use a GPU; None if it can."""
    module = getattr(torch, device.type, None)
    if module is None or not module.is_available():
        return "a torch that finds none"
    count = module.device_count()
    return None if (device.index or 0) < count else f"{count} of them"


def destination(workers: int) -> Destination | None:
    """Return the destination of a loader's batches for this count of workers; None: host memory."""
    if _device is None or not is_on_gpu():
        return None
    device = torch.device("cuda", torch.cuda.current_device()) if _device.index is None else _device
    threads = max(1, workers // 2)  # for each of the two plans that run at a time
    key = (device, threads)
    if key not in _destinations:
        _destinations[key] = Destination(device, device.index, threads)
    return _destinations[key]


def is_on_gpu() -> bool:
    """Return whether Stoker computes and delivers batches in the memory of a GPU of CUDA."""
    return _device is not None and _device.type == "cuda"


def is_copying() -> bool:
    """Return whether the CPU computes batches, which torch copies to another device."""
    return _device is not None and _device.type != "cuda"


def to_device(x: torch.Tensor) -> torch.Tensor:
    """Return a computed tensor where batches are delivered."""
    if not is_copying():
        return x
    # The CPU may reuse memory that is not page-locked before the device has read it.
    return x.to(_device, non_blocking=pins_host_memory() and x.is_pinned())


def pins_host_memory() -> bool:
    """Return whether batches are computed in page-locked memory, from which the device copies in the background."""
    return is_copying() and _can_pin(str(_device))


@functools.cache
def _can_pin(device: str) -> bool:
    try:
        return torch.empty(1, pin_memory=True).is_pinned()
    except (RuntimeError, NotImplementedError):  # a device without such memory
        return False


def current_choice() -> torch.device | None:
    """Return the current choice, for :func:`restore`."""
    return _device


def restore(device: torch.device | None) -> None:
    """Restore an earlier choice."""
    global _device
    _device = device


def close() -> None:
    """Deliver in host memory again, and end all threads."""
    restore(None)
    while _destinations:
        _destinations.popitem()[1].close()
