# SPDX-License-Identifier: Apache-2.0
"""Memoized trials: each property of this machine's libraries is determined once per process.

Every trial goes through :func:`find_once`. Tests can therefore see which trials a step depends on, and can replace
their results by those of another processor.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")

_answers: dict[tuple[Hashable, ...], Any] = {}


def find_once(key: tuple[Hashable, ...], find: Callable[[], T]) -> T:
    """Return the memoized result of ``find`` for ``key``. The key's first item names the trial."""
    try:
        found: T = _answers[key]
    except KeyError:
        found = _answers[key] = find()
    return found
