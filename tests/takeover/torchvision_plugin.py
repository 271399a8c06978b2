# SPDX-License-Identifier: Apache-2.0
"""Pytest plugin for torchvision's own tests: the take-over around each of them, and a record of the outcomes.

``torchvision_tests.py`` starts pytest with it. Environment variables are the settings: ``PLUGIN_MODE`` is a mode of
``torchvision_tests.py``, ``PLUGIN_PART`` selects every n-th test, ``PLUGIN_OUTCOMES`` is the file of outcomes, and
``PLUGIN_ONLY``, if it is set, a file with the names of the only tests to run.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.takeover import native_torchvision

native_torchvision.load()

import stoker.torchvision  # noqa: E402 - torchvision is imported after its libraries
from stoker.frontends.torchvision.hooks import switch  # noqa: E402

_MODE = os.environ["PLUGIN_MODE"]
_PART, _PARTS = map(int, os.environ["PLUGIN_PART"].split("/"))


def pytest_configure() -> None:
    """Enable the take-over before any test module is imported."""
    if _MODE != "untouched":
        stoker.torchvision.enable()


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Select a part of the tests, the same in every mode."""
    items[:] = [item for item in items if zlib.crc32(item.nodeid.encode()) % _PARTS == _PART]
    if "PLUGIN_ONLY" in os.environ:
        with open(os.environ["PLUGIN_ONLY"], encoding="utf-8") as file:
            only = set(json.load(file))
        items[:] = [item for item in items if item.nodeid in only]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: Any) -> Iterator[None]:
    """Run a test as if a DataLoader called it: its own code is the script's."""
    if _MODE == "fetching":
        switch.type_checks.scan(item.obj)
    with switch.fetching() if _MODE == "fetching" else contextlib.nullcontext():
        return (yield)


def pytest_collectreport(report: Any) -> None:
    """Record modules that cannot be imported."""
    if report.failed:
        _record(report.nodeid, "failed", str(report.longrepr))


def pytest_runtest_logreport(report: Any) -> None:
    """Record the outcome of a test: that of its call, or what kept it from being called."""
    if report.when == "call" or report.outcome != "passed":
        _record(report.nodeid, report.outcome, str(report.longrepr) if report.failed else "")


def _record(test: str, outcome: str, text: str) -> None:
    with open(os.environ["PLUGIN_OUTCOMES"], "a", encoding="utf-8") as file:
        file.write(json.dumps([test, outcome, text[-1500:]]) + "\n")
