# SPDX-License-Identifier: Apache-2.0
"""A plugin for pytest under compute-sanitizer: every piece of a GPU's memory is an allocation of its own, so that what
is read or written beyond one is seen. The tool's own threads and files are no leak."""

from __future__ import annotations

import pytest

from stoker.device.gpu import Gpu


def pytest_configure() -> None:
    opened = Gpu.open

    def open_apart(number: int, memory_limit: int | None = None) -> Gpu:
        gpu = opened(number, memory_limit)
        gpu.device.apart = True
        return gpu

    Gpu.open = staticmethod(open_apart)  # type: ignore[method-assign]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.add_marker(pytest.mark.leaks("of the tool"))
