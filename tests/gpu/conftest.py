# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tests that need a GPU. Without one the tests are skipped, or fail if ``REQUIRE_GPU=1`` requires one."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True, scope="session")  # before fixtures that need a GPU
def a_gpu(gpu_in_use: bool) -> None:
    """Skip without a GPU, or fail if one is required."""
    if not gpu_in_use:
        if os.environ.get("REQUIRE_GPU") == "1":
            pytest.fail("there is no CUDA device, and REQUIRE_GPU=1")
        pytest.skip("needs a GPU, and there is none: `make test-gpu`")


@pytest.fixture(autouse=True, scope="session")
def compiled_stages() -> None:
    """Compile all stages, however many one process tests. `tests/cuda/test_interpreter.py` tests the interpreter."""
    from stoker.device.gpu import Gpu

    Gpu.compiled_first = 1 << 40


@pytest.fixture(scope="session")
def gpu_to_itself() -> bool:
    """Return whether no other tests use the GPU at the same time, so that its free memory depends only on this one."""
    return int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) == 1
