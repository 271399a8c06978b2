# SPDX-License-Identifier: Apache-2.0
"""Destination of batches: the arguments of :func:`stoker.torchvision.enable`, and the open destinations."""

from __future__ import annotations

import functools
from typing import NamedTuple

import torch

from .... import settings
from ....contract.errors import ArgumentError, DeviceError
from ....contract.warning import warn
from ..gpu.destination import Destination
from ..gpu.device_steps import DeviceSteps


class Choice(NamedTuple):
    """Device of later batches, None for host memory, and whether torch computes the last steps of images there."""

    device: torch.device | None = None
    runs_steps: bool = False


_HOST = Choice()
_choice = _HOST
_destinations: dict[tuple[torch.device, int], Destination] = {}


def choose(device: str, without_gpu: str | None, *, device_steps: bool = False) -> None:
    """Set the device on which later batches are delivered; see :func:`stoker.torchvision.enable`."""
    global _choice
    policy = settings.without_gpu() if without_gpu is None else without_gpu
    if policy not in ("error", "cpu"):
        raise ArgumentError(f'`stoker.torchvision.enable`: expected `without_gpu` "error" or "cpu", got {policy!r}')
    requested = _parsed(device)
    if device_steps and requested.type in ("cpu", "cuda"):
        raise ArgumentError(
            f"`stoker.torchvision.enable`: expected `device_steps=True` with one of {', '.join(_others())}, "
            f"got it with {device!r}, where Stoker's own code computes all steps. Leave `device_steps` out"
        )
    if requested.type == "cpu":
        _choice = _HOST
        return
    missing = _missing(requested)
    if missing is None:
        _choice = Choice(requested, bool(device_steps))
        return
    text = f"`stoker.torchvision.enable`: expected a GPU for {device!r}, got {missing}"
    if policy != "cpu":
        raise DeviceError(
            f'{text}. Leave the device out, or give `without_gpu="cpu"` (or set STOKER_WITHOUT_GPU=cpu in the '
            "environment): batches are then delivered on the CPU"
        )
    warn(f"{text}. Batches are delivered on the CPU, with the same values", stacklevel=3)
    _choice = _HOST


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
    chosen = _choice.device
    if chosen is None or not is_on_gpu():
        return None
    device = torch.device("cuda", torch.cuda.current_device()) if chosen.index is None else chosen
    threads = max(1, workers // 2)  # for each of the two plans that run at a time
    key = (device, threads)
    if key not in _destinations:
        _destinations[key] = Destination(device, device.index, threads)
    return _destinations[key]


def is_on_gpu() -> bool:
    """Return whether Stoker computes and delivers batches in the memory of a GPU of CUDA."""
    return _choice.device is not None and _choice.device.type == "cuda"


def is_copying() -> bool:
    """Return whether the CPU computes batches, which torch copies to another device."""
    return _choice.device is not None and _choice.device.type != "cuda"


def device_steps() -> DeviceSteps | None:
    """Return the steps of images that torch computes on the chosen device; None if it only receives batches."""
    device, runs_steps = _choice
    return DeviceSteps(device, to_device) if device is not None and runs_steps else None


def to_device(x: torch.Tensor) -> torch.Tensor:
    """Return a computed tensor where batches are delivered."""
    device = _choice.device
    if device is None or not is_copying() or x.device.type == device.type:
        return x
    # The CPU may reuse memory that is not page-locked before the device has read it.
    return x.to(device, non_blocking=pins_host_memory() and x.is_pinned())


def pins_host_memory() -> bool:
    """Return whether batches are computed in page-locked memory, from which the device copies in the background."""
    return is_copying() and _can_pin(str(_choice.device))


@functools.cache
def _can_pin(device: str) -> bool:
    try:
        return torch.empty(1, pin_memory=True).is_pinned()
    except (RuntimeError, NotImplementedError):  # a device without such memory
        return False


def current_choice() -> Choice:
    """Return the current choice, for :func:`restore`."""
    return _choice


def restore(choice: Choice) -> None:
    """Restore an earlier choice."""
    global _choice
    _choice = choice


def close() -> None:
    """Deliver in host memory again, and end all threads."""
    restore(_HOST)
    while _destinations:
        _destinations.popitem()[1].close()
