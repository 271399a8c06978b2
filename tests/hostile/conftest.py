# SPDX-License-Identifier: Apache-2.0
"""Threads that libraries start on first use and keep."""

from __future__ import annotations

import pytest

from tests.hostile.walk import containers


@pytest.fixture(scope="session", autouse=True)
def threads_of_arrow(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Start the threads of pyarrow and datasets, which would look like a leak of the first test that writes a table."""
    containers.tables(tmp_path_factory.mktemp("tables"), "a", [b"x"], [0], ["a"])
