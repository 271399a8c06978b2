# SPDX-License-Identifier: Apache-2.0
"""Set of living objects that any thread may change, for work at the end of the process."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

T = TypeVar("T")


class LiveObjects(Generic[T]):
    """Set of objects by identity. It does not keep them alive.

    Unlike a ``WeakSet``, it may be listed while other threads add objects and while objects end: every step is one
    operation of a dictionary.
    """

    def __init__(self) -> None:
        self._references: dict[int, weakref.ref[T]] = {}

    def add(self, item: T) -> None:
        """Add an object."""
        self._references[id(item)] = weakref.ref(item, self._forget(id(item)))

    def discard(self, item: T) -> None:
        """Remove an object if it is in the set."""
        self._references.pop(id(item), None)

    def list(self) -> list[T]:
        """Return the objects that are alive."""
        found = (reference() for reference in list(self._references.values()))
        return [item for item in found if item is not None]

    def _forget(self, number: int) -> _Forget[T]:
        return _Forget(self._references, number)


class _Forget(Generic[T]):
    """Callback that removes an ended object, unless a new one has its number already."""

    __slots__ = ("_number", "_references")

    def __init__(self, references: dict[int, weakref.ref[T]], number: int) -> None:
        self._references = references
        self._number = number

    def __call__(self, ended: weakref.ref[T]) -> None:
        found = self._references.pop(self._number, None)
        if found is not None and found is not ended:
            self._references.setdefault(self._number, found)
