# SPDX-License-Identifier: Apache-2.0
"""Destination of batches: the arguments of :func:`stoker.torchvision.enable`, and the open destinations."""

from __future__ import annotations

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
    if parsed.type not in ("cpu", "cuda"):
        raise ArgumentError(
            f'`stoker.torchvision.enable`: expected `device` "cpu", "cuda" or "cuda:" and a number, got {device!r}'
        )
    return parsed


def _missing(device: torch.device) -> str | None:
    """Return the reason why torch cannot use a GPU; None if it can."""
    if not torch.cuda.is_available():
        return "a torch that finds none"
    count = torch.cuda.device_count()
    return None if (device.index or 0) < count else f"{count} of them"


def destination(workers: int) -> Destination | None:
    """Return the destination of a loader's batches for this count of workers; None: host memory."""
    if _device is None:
        return None
    device = torch.device("cuda", torch.cuda.current_device()) if _device.index is None else _device
    threads = max(1, workers // 2)  # for each of the two plans that run at a time
    key = (device, threads)
    if key not in _destinations:
        _destinations[key] = Destination(device, device.index, threads)
    return _destinations[key]


def is_on_gpu() -> bool:
    """Return whether batches are delivered in a GPU's memory."""
    return _device is not None


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
