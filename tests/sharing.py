# SPDX-License-Identifier: Apache-2.0
"""Coordination of test processes (pytest's ``-n``): a test marked ``alone`` runs while no other test runs."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from pathlib import Path

import pytest


def share(config: pytest.Config) -> None:
    """Register the coordination if this is one of several processes."""
    if _is_one_of_several(config):
        config.pluginmanager.register(_Sharing(folder_of_all(config, Path(config.option.basetemp))))


def folder_of_all(config: pytest.Config, own: Path) -> Path:
    """Return the parent of the folders of all processes of one test run, given the folder of this process."""
    return own.parent if _is_one_of_several(config) else own


def _is_one_of_several(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


class _Sharing:
    """Locks of one process. The system releases them however the process ends.

    Args:
        folder: shared by the processes of one test run only.
    """

    def __init__(self, folder: Path) -> None:
        self._door, self._room = (
            os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) for name in ("door", "room")
        )
        self._alone = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, bool, bool]:
        """Run a test, including the fixtures of its file."""
        self._enter(_wants_to_be_alone(item))
        try:
            return (yield)
        finally:
            if not (self._alone and nextitem is not None and _wants_to_be_alone(nextitem)):
                fcntl.lockf(self._room, fcntl.LOCK_UN)
                self._alone = False

    def _enter(self, alone: bool) -> None:
        if self._alone:
            return
        fcntl.lockf(self._door, fcntl.LOCK_EX)  # While a process waits to run alone, no other process may start a test.
        try:
            fcntl.lockf(self._room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        finally:
            fcntl.lockf(self._door, fcntl.LOCK_UN)
        self._alone = alone

    def pytest_unconfigure(self) -> None:
        """Release the locks after the last test."""
        os.close(self._door)
        os.close(self._room)


def _wants_to_be_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None
