# SPDX-License-Identifier: Apache-2.0
"""Lock between processes that are about to build the same file: one builds it, and the others wait.

The lock only saves time: a process that does not get it in time builds the file as well. It belongs to an open file, so
that the system releases it when its process ends in any way.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

from ..contract.private_folder import make_private_folder

MAX_WAIT_S = 60.0  # far longer than any kernel takes: the process that builds it is stopped or hangs
_POLL_S = 0.02


@contextlib.contextmanager
def build_lock(path: Path) -> Iterator[None]:
    """Let one process (and thread) at a time build ``path``.

    The lock is a file near it, which is removed when no process waits. If files cannot be written, or the file system
    has no locks, no process waits, and each builds ``path``.
    """
    lock = path.with_suffix(".lock")
    handle = _acquire(lock)
    try:
        yield
    finally:
        if handle is not None:
            _release(handle, lock)


def _acquire(lock: Path) -> int | None:
    """Return the open file that holds the lock; None without a lock."""
    until = time.monotonic() + MAX_WAIT_S
    while True:
        try:
            make_private_folder(lock.parent)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return None
        try:
            if _lock(handle, until) and _is_at(lock, handle):
                return handle
        except BaseException as error:
            os.close(handle)
            if isinstance(error, OSError):
                return None
            raise
        os.close(handle)
        if time.monotonic() >= until:
            return None  # otherwise the previous owner has removed the file, and this lock would exclude no process


def _lock(handle: int, until: float) -> bool:
    """Return whether the lock was acquired in time.

    Raises:
        OSError: the file system has no locks.
    """
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
        time.sleep(_POLL_S)


def _is_at(lock: Path, handle: int) -> bool:
    """Return whether the locked file is the one that other processes would open."""
    try:
        return os.path.samestat(os.stat(lock), os.fstat(handle))
    except OSError:
        return False


def _release(handle: int, lock: Path) -> None:
    with contextlib.suppress(OSError):
        os.unlink(lock)  # before unlocking, so that no process can lock a new file in between
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)  # a forked process may share the open file
    os.close(handle)
