# SPDX-License-Identifier: Apache-2.0
"""Several processes run tests (pytest's ``-n``), but a test marked ``alone`` runs while no other one does."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from pathlib import Path

import pytest


def share(config: pytest.Config) -> None:
    """If this is one of several processes: heed the others."""
    if _is_one_of_several(config):
        config.pluginmanager.register(_Sharing(folder_of_all(config, Path(config.option.basetemp))))


def folder_of_all(config: pytest.Config, own: Path) -> Path:
    """What the folders of all processes of one run of the tests are in, given this process's."""
    return own.parent if _is_one_of_several(config) else own


def _is_one_of_several(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


class _Sharing:
    """One process's part. The locks are the process's: the system takes them back however it ends.

    Args:
        folder: the same for all of them, and only theirs.
    """

    def __init__(self, folder: Path) -> None:
        self._door, self._room = (
            os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) for name in ("door", "room")
        )
        self._alone = False

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, bool, bool]:
        """Run a test, with what its file sets up for it."""
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
        fcntl.lockf(self._door, fcntl.LOCK_EX)  # who waits for the room to be empty lets nobody in
        try:
            fcntl.lockf(self._room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        finally:
            fcntl.lockf(self._door, fcntl.LOCK_UN)
        self._alone = alone

    def pytest_unconfigure(self) -> None:
        """Its last test has ended."""
        os.close(self._door)
        os.close(self._room)


def _wants_to_be_alone(item: pytest.Item) -> bool:
    return item.get_closest_marker("alone") is not None
