# SPDX-License-Identifier: Apache-2.0
"""DALI's choices between its executors and settings of its memory pools. Stoker has one executor, and plans memory."""

from __future__ import annotations

import enum

from ...contract.errors import ArgumentError
from ...contract.text import brief
from ..registry import find, names
from .catalogue import ALIASES, NAMES, class_name
from .errors import raises_as_dali

_growth = {"host": 1.1, "device": 1.1}
_shrink_threshold = 0.5


class StreamPolicy(enum.Enum):
    """Use of CUDA streams by operators (``stream_policy=``). Without effect: a pipeline has one stream."""

    UNSPECIFIED = 0
    SINGLE = 16
    PER_BACKEND = 32
    PER_OPERATOR = 48


class OperatorConcurrency(enum.Enum):
    """Operators that run at the same time (``concurrency=``). Without effect: rows run at the same time."""

    UNSPECIFIED = 0
    NONE = 2
    BACKEND = 4
    FULL = 6


class TensorLayout(str):
    """Names of axes, one letter for each. A layout is a text wherever one is given or returned."""

    __slots__ = ()

    @raises_as_dali
    def __new__(cls, layout: str = "") -> TensorLayout:
        if not isinstance(layout, str):
            raise ArgumentError(f'`TensorLayout`: expected a text such as "HWC", got {brief(layout)}')
        return super().__new__(cls, layout)


def class_names(device: str) -> set[str]:
    """Return the classes in `ops` that run on a device, as DALI lists them: ``decoders__Image`` for `decoders.Image`.

    Args:
        device: "cpu", "gpu", or "mixed" for decoders that take data on the CPU and return data on a GPU.
    """
    usable = {name: ALIASES.get(name, name) for name in {*NAMES, *ALIASES}}
    return {_listed(name) for name, real in usable.items() if real in names() and device in find(real).devices}


def _listed(name: str) -> str:
    return "__".join([*name.split(".")[:-1], class_name(name)])


# ---- memory pools ----


def ReleaseUnusedMemory() -> None:
    """Do nothing: pipelines release unused memory themselves, and all of it when they are closed."""


def PreallocateDeviceMemory(bytes: int, device_id: int) -> None:
    """Do nothing: a pipeline allocates the memory that it planned, once.

    Args:
        bytes: accepted without effect.
        device_id: accepted without effect.
    """


def PreallocatePinnedMemory(bytes: int) -> None:
    """Do nothing: a pipeline allocates the memory that it planned, once.

    Args:
        bytes: accepted without effect.
    """


def GetHostBufferGrowthFactor() -> float:
    """Return the factor that :func:`SetHostBufferGrowthFactor` set."""
    return _growth["host"]


def GetDeviceBufferGrowthFactor() -> float:
    """Return the factor that :func:`SetDeviceBufferGrowthFactor` set."""
    return _growth["device"]


def SetHostBufferGrowthFactor(factor: float) -> None:
    """Store a factor, which has no effect: buffers have the size that is planned.

    Args:
        factor: at least 1.
    """
    _growth["host"] = _factor("SetHostBufferGrowthFactor", factor)


def SetDeviceBufferGrowthFactor(factor: float) -> None:
    """Store a factor, which has no effect: buffers have the size that is planned.

    Args:
        factor: at least 1.
    """
    _growth["device"] = _factor("SetDeviceBufferGrowthFactor", factor)


def SetBufferGrowthFactor(factor: float) -> None:
    """Store a factor for both kinds of buffers, without effect.

    Args:
        factor: at least 1.
    """
    SetHostBufferGrowthFactor(factor)
    SetDeviceBufferGrowthFactor(factor)


def GetHostBufferShrinkThreshold() -> float:
    """Return the share that :func:`SetHostBufferShrinkThreshold` set."""
    return _shrink_threshold


@raises_as_dali
def SetHostBufferShrinkThreshold(share: float) -> None:
    """Store a share, which has no effect: buffers four times as large as needed are released.

    Args:
        share: from 0 to 1.
    """
    global _shrink_threshold
    if not 0 <= share <= 1:
        raise ArgumentError(f"`SetHostBufferShrinkThreshold`: expected a share from 0 to 1, got {brief(share)}")
    _shrink_threshold = float(share)


@raises_as_dali
def _factor(name: str, factor: float) -> float:
    if not factor >= 1:
        raise ArgumentError(f"`{name}`: expected a factor of at least 1, got {brief(factor)}")
    return float(factor)
