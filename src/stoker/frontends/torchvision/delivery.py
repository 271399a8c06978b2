# SPDX-License-Identifier: Apache-2.0
"""Where batches are delivered: what :func:`stoker.torchvision.enable` was told, and the places there are."""

from __future__ import annotations

import warnings

import torch

from ... import settings
from ...contract.errors import ArgumentError, DeviceError
from .place import Place

_device: torch.device | None = None  # None: this machine's memory
_places: dict[tuple[torch.device, int], Place] = {}


def choose(device: str, without_gpu: str | None) -> None:
    """Deliver on ``device`` from now on; see :func:`stoker.torchvision.enable`."""
    global _device
    otherwise = settings.without_gpu() if without_gpu is None else without_gpu
    if otherwise not in ("error", "cpu"):
        raise ArgumentError(f'`stoker.torchvision.enable`: expected `without_gpu` "error" or "cpu", got {otherwise!r}')
    asked = _parsed(device)
    if asked.type == "cpu":
        _device = None
        return
    missing = _missing(asked)
    if missing is None:
        _device = asked
        return
    text = f"`stoker.torchvision.enable`: expected a GPU for {device!r}, got {missing}"
    if otherwise != "cpu":
        raise DeviceError(
            f'{text}. Leave the device out, or give `without_gpu="cpu"` (or set STOKER_WITHOUT_GPU=cpu in the '
            "environment): batches are then delivered on the CPU"
        )
    warnings.warn(f"{text}. Batches are delivered on the CPU, with the same values", RuntimeWarning, stacklevel=3)
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
    """Why torch cannot use a GPU; None if it can."""
    if not torch.cuda.is_available():
        return "a torch that finds none"
    count = torch.cuda.device_count()
    return None if (device.index or 0) < count else f"{count} of them"


def place(workers: int) -> Place | None:
    """Where a loader with so many workers has its batches; None: in this machine's memory."""
    if _device is None:
        return None
    device = torch.device("cuda", torch.cuda.current_device()) if _device.index is None else _device
    threads = max(1, workers // 2)  # of each of the two plans that work at a time
    key = (device, threads)
    if key not in _places:
        _places[key] = Place(device, device.index, threads)
    return _places[key]


def is_elsewhere() -> bool:
    """Whether batches are delivered in other memory than this machine's."""
    return _device is not None


def chosen() -> torch.device | None:
    """What was chosen, for :func:`restore`."""
    return _device


def restore(device: torch.device | None) -> None:
    """Choose what was chosen before."""
    global _device
    _device = device


def close() -> None:
    """Deliver in this machine's memory again, and end all threads."""
    restore(None)
    while _places:
        _places.popitem()[1].close()
