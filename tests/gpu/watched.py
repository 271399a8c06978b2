# SPDX-License-Identifier: Apache-2.0
"""A plugin for pytest under compute-sanitizer: every piece of a GPU's memory is an allocation of its own, so that what
is read or written beyond one is seen. The tool's own threads and files are no leak. ``--part 1/4``: of the tests
chosen, every fourth from the second on, so that several processes share a file whose tests take minutes."""

from __future__ import annotations

import pytest

from stoker.device.gpu import Gpu


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--part", default="0/1", help="which share of the tests: NUMBER/COUNT")


def pytest_configure() -> None:
    opened = Gpu.open

    def open_apart(number: int, memory_limit: int | None = None) -> Gpu:
        gpu = opened(number, memory_limit)
        gpu.device.apart = True
        return gpu

    Gpu.open = staticmethod(open_apart)  # type: ignore[method-assign]


@pytest.hookimpl(trylast=True)  # behind -k
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    number, count = map(int, config.getoption("--part").split("/"))
    config.hook.pytest_deselected(items=[item for at, item in enumerate(items) if at % count != number])
    items[:] = items[number::count]
    for item in items:
        item.add_marker(pytest.mark.leaks("of the tool"))
