# SPDX-License-Identifier: Apache-2.0
"""These tests need a GPU. Without one they are skipped, or fail where ``REQUIRE_GPU=1`` says that there must be one."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True, scope="session")  # before what needs one
def a_gpu(gpu_in_use: bool) -> None:
    """A GPU, in use."""
    if not gpu_in_use:
        if os.environ.get("REQUIRE_GPU") == "1":
            pytest.fail("there is no CUDA device, and REQUIRE_GPU=1")
        pytest.skip("needs a GPU, and there is none: `make test-gpu`")


@pytest.fixture(scope="session")
def gpu_to_itself() -> bool:
    """Whether no other tests use the GPU at the same time, so that what it has free is a matter of this one's."""
    return int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) == 1
