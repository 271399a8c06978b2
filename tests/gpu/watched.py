# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin for compute-sanitizer, which makes every piece of GPU memory a separate allocation.

So the tool detects reads and writes beyond a piece. A process opens each GPU once and loads each kernel once, since the
tool instruments every loaded kernel. Threads and files of the tool are no leak. ``--part 1/4``: every fourth of the
selected tests, from the second on, so that several processes share a file with slow tests.
"""

from __future__ import annotations

import pytest

from stoker.device.gpu import Gpu
from stoker.native import _native


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", default="0/1", help="which share of the tests: NUMBER/COUNT")


def pytest_configure() -> None:
    opened, load = Gpu.open, Gpu.load
    devices: dict[int, _native.gpu.Device] = {}
    modules: dict[tuple[int, str], _native.gpu.Module] = {}

    def open_apart(number: int, memory_limit: int | None = None) -> Gpu:
        if number not in devices:
            devices[number] = opened(number).device
            devices[number].separate_allocations = True
        return Gpu(devices[number], 2**64 - 1 if memory_limit is None else memory_limit)

    def load_once(self: Gpu, source: str) -> _native.gpu.Module:
        key = id(self.device), source
        if key not in modules:
            modules[key] = load(self, source)
        return modules[key]

    Gpu.open = staticmethod(open_apart)  # type: ignore[method-assign]
    Gpu.load = load_once  # type: ignore[method-assign]


@pytest.hookimpl(trylast=True)  # after -k
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    number, count = map(int, config.getoption("--part").split("/"))
    config.hook.pytest_deselected(items=[item for at, item in enumerate(items) if at % count != number])
    items[:] = items[number::count]
    for item in items:
        item.add_marker(pytest.mark.leaks("of the tool"))
