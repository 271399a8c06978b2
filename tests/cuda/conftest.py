# SPDX-License-Identifier: Apache-2.0
"""GPU 0 without a GPU: the null device, with kernels on emulated threads."""

from __future__ import annotations

from pathlib import Path

import emulated_stages
import pytest
from fake_engines import engines as engines
from fake_engines import nvjpeg as nvjpeg
from fake_nvcuvid import fake_video_engines as fake_video_engines
from fake_nvcuvid import nvcuvid as nvcuvid

from stoker.device.gpu import Gpu


@pytest.fixture(autouse=True, scope="session")
def _in_use(gpu_in_use: bool) -> None:
    """Use a GPU, if there is one: some of these tests use it next to the null device. All stages are compiled."""
    Gpu.compiled_first = 1 << 40


@pytest.fixture(scope="session")
def folder(kernel_folder: Path) -> Path:
    """Return the folder of compiled kernels."""
    return kernel_folder


@pytest.fixture
def emulated_gpu(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pipelines open the emulated GPU."""

    def opened(number: int, memory_limit: int | None = None) -> emulated_stages.EmulatedGpu:
        gpu = emulated_stages.EmulatedGpu(folder)
        if memory_limit is not None:
            gpu.quota.limit = memory_limit
        return gpu

    monkeypatch.setattr(Gpu, "open", staticmethod(opened))
