# SPDX-License-Identifier: Apache-2.0
"""These tests need a GPU. Without one they are skipped, or fail where ``REQUIRE_GPU=1`` says that there must be one."""

from __future__ import annotations

import os

import pytest

from stoker.device.gpu import Gpu
from stoker.native import _native


@pytest.fixture(autouse=True, scope="session")  # before what needs one
def a_gpu() -> None:
    """A GPU that is in use: the driver's threads and files stay with the process and are no leak of a test."""
    if _native.gpu.count_cuda():
        import torch

        torch.ones(8, device="cuda").sum().item()
        Gpu.open(0)
        return
    if os.environ.get("REQUIRE_GPU") == "1":
        pytest.fail("there is no CUDA device, and REQUIRE_GPU=1")
    pytest.skip("there is no CUDA device")
