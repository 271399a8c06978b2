# SPDX-License-Identifier: Apache-2.0
"""Paths from users: texts, bytes, and objects with ``__fspath__``."""

from __future__ import annotations

import os
import stat
from typing import Any

from .errors import ArgumentError
from .text import brief


def as_path(value: Any) -> str | bytes | None:
    """Return ``value`` as a text or bytes; None if it is no path.

    >>> from pathlib import Path
    >>> as_path(Path("a") / "b.jpg"), as_path("a.jpg"), as_path(3)
    ('a/b.jpg', 'a.jpg', None)
    """
    try:
        return os.fspath(value)  # type: ignore[no-any-return]
    except Exception:  # noqa: BLE001 - a user's `__fspath__` may raise anything
        return None


def regular_file(value: Any, call: str) -> str:
    """Return the path of a regular file. A read of a pipe or device may wait for ever.

    Args:
        value: path from a user.
        call: name of the user's call, for messages.

    Raises:
        ArgumentError: it is no path, or that of something else.
        OSError: there is no such file.
    """
    name = as_path(value)
    if name is None or "\0" in os.fsdecode(name):
        raise ArgumentError(f"`{call}`: expected the path of a file, got {brief(value)}")
    if not stat.S_ISREG(os.stat(name).st_mode):
        raise ArgumentError(f"`{call}`: expected a regular file, got {brief(value)}, a folder, pipe or device")
    return os.fsdecode(name)
