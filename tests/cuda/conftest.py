# SPDX-License-Identifier: Apache-2.0
"""GPU 0 without a GPU: the null device, with kernels on the emulation of threads."""

from __future__ import annotations

from pathlib import Path

import emulated_stages
import pytest
from fake_engines import engines as engines
from fake_engines import nvjpeg as nvjpeg

from stoker.device.gpu import Gpu


@pytest.fixture(autouse=True, scope="session")
def _in_use(gpu_in_use: bool) -> None:
    """Where there is a GPU, some of these tests use it beside the null device."""


@pytest.fixture(scope="session")
def folder(kernel_folder: Path) -> Path:
    """Where compiled kernels are kept."""
    return kernel_folder


@pytest.fixture
def emulated_gpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What pipelines open as a GPU."""

    def opened(number: int, memory_limit: int | None = None) -> emulated_stages.EmulatedGpu:
        gpu = emulated_stages.EmulatedGpu(folder)
        if memory_limit is not None:
            gpu.account.limit = memory_limit
        return gpu

    monkeypatch.setattr(Gpu, "open", staticmethod(opened))
