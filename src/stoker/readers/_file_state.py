# SPDX-License-Identifier: Apache-2.0
"""State of a file, by which a reader notices that the file has changed since the pipeline was built."""

from __future__ import annotations

import os

from ..contract.errors import DataError
from ..contract.text import printable

FileState = tuple[int, int, int]  # size, modification time in nanoseconds, inode


def state_of(path: str | int) -> FileState:
    """Return the state of a file, by its path or descriptor.

    Raises:
        OSError: there is no such file.
    """
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ino


def require_unchanged(path: str, state: FileState, now: FileState | None = None) -> None:
    """Raise DataError if a file has changed.

    Args:
        path: the file.
        state: its state when the pipeline was built.
        now: its current state; by default found by the path.
    """
    if (state_of(path) if now is None else now) != state:
        raise DataError(f"expected '{printable(path)}' as it was when the pipeline was built, it has changed")
