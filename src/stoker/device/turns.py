# SPDX-License-Identifier: Apache-2.0
"""Taking turns between processes: of those that are about to make the same file, one does and the others wait.

It is a matter of time alone: whoever does not get its turn goes ahead after a while and makes the file as well. A lock
is an open file's, so that the system lets go of it when its process ends, however that happens.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

MOST_WAIT_S = 60.0  # many times what the longest kernel takes: its maker has been stopped, or hangs
_LOOK_S = 0.02


@contextlib.contextmanager
def turn(path: Path) -> Iterator[None]:
    """Let one process (and thread) at a time make ``path``.

    The lock is a file beside it, which is gone when nobody waits. Where files cannot be written, or the file system has
    no locks, nobody waits: everyone makes ``path``.
    """
    lock = path.with_suffix(".lock")
    handle = _taken(lock)
    try:
        yield
    finally:
        if handle is not None:
            _give(handle, lock)


def _taken(lock: Path) -> int | None:
    """The open file that holds the lock; None without one."""
    until = time.monotonic() + MOST_WAIT_S
    while True:
        try:
            lock.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
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
            return None  # else the one before has removed the file: this lock would keep nobody out


def _lock(handle: int, until: float) -> bool:
    """Whether the lock was taken in time. Raises OSError where there are no locks."""
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
        time.sleep(_LOOK_S)


def _is_at(lock: Path, handle: int) -> bool:
    """Whether the file that was locked is the one that others would find."""
    try:
        return os.path.samestat(os.stat(lock), os.fstat(handle))
    except OSError:
        return False


def _give(handle: int, lock: Path) -> None:
    with contextlib.suppress(OSError):
        os.unlink(lock)  # before it is unlocked, so that nobody can have locked another one meanwhile
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)  # a process that was forked meanwhile has the same open file
    os.close(handle)
