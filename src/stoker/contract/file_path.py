# SPDX-License-Identifier: Apache-2.0
"""Paths from users: texts, bytes, and objects with ``__fspath__``."""

from __future__ import annotations

import os
from typing import Any


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
