# SPDX-License-Identifier: Apache-2.0
"""A GPU that is open: the native device, and the kernels of plans on it."""

from __future__ import annotations

from typing import Any

from ..contract.errors import DeviceError, UnsupportedError
from ..contract.step import Native, Stage
from ..native import _native


class Gpu:
    """A GPU for plans and runs; see ``graph.plan.KernelsOnGpu`` and ``executor.run.OpenGpu``.

    Attributes:
        device: the device, as the run loop uses it.
        memory_limit: the most bytes of its memory that a run may take.
    """

    def __init__(self, device: _native.gpu.Device, memory_limit: int) -> None:
        self.device = device
        self.memory_limit = memory_limit

    @staticmethod
    def open(number: int, memory_limit: int | None = None) -> Gpu:
        """Open CUDA device ``number``; DeviceError says what is missing."""
        try:
            device = _native.gpu.open_cuda(number)
        except _native.gpu.DeviceFailure as failure:
            raise DeviceError(f"GPU {number} cannot be used: {failure}") from failure
        return Gpu(device, 2**64 - 1 if memory_limit is None else memory_limit)

    def stage(self, body: Stage, arguments: tuple[Any, ...]) -> Any:
        """The kernel of a stage."""
        raise UnsupportedError(f"this build has no kernels for GPUs: {body!r}")

    def native(self, body: Native) -> Any:
        """The kernel of a step whose ``gpu`` trait is set."""
        raise UnsupportedError(f"this build has no kernels for GPUs: {body!r}")
