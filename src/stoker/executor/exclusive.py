# SPDX-License-Identifier: Apache-2.0
"""Exclusive use of a running pipeline: one thread at a time, in the process that owns it, until it is closed."""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from ..contract.errors import StateError

E = TypeVar("E", bound="Exclusive")
P = ParamSpec("P")
T = TypeVar("T")


def exclusive_method(method: Callable[Concatenate[E, P], T]) -> Callable[Concatenate[E, P], T]:
    """Decorate a method that one thread at a time may run, and only in the process that owns the run.

    Raises:
        StateError: the pipeline is closed, or one of its own sources makes the call.
    """

    @functools.wraps(method)
    def waiting(self: E, /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._check_usable()  # before the lock: a forked child may inherit it locked forever
        with self._lock:
            if self._busy:
                raise StateError("a pipeline's own source cannot request batches from it, or change its position")
            try:
                self._busy = True
                return method(self, *args, **kwargs)
            finally:
                self._busy = False
                if self._closed:
                    self._forget()

    return waiting


class Exclusive(ABC):
    """Base class of objects with exclusive methods (:func:`exclusive_method`).

    Any thread may close the object, even while such a method runs.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._busy = False
        self._closing = threading.Lock()
        self._closed = False

    @property
    def closed(self) -> bool:
        """Return whether the object is closed."""
        return self._closed

    def _check_usable(self) -> None:
        """Raise StateError if the object is closed or belongs to another process."""
        if self._closed:
            raise StateError("the pipeline is closed")

    def _mark_closed(self) -> bool:
        """Mark the object as closed. Return True to the first caller only."""
        with self._closing:
            first, self._closed = not self._closed, True
        return first

    @abstractmethod
    def _forget(self) -> None:
        """Release everything in flight. Called when the object is closed and no exclusive method runs."""

    def _forget_if_idle(self) -> None:
        """Call :meth:`_forget` now; if an exclusive method runs, it does so when it returns."""
        if self._lock.acquire(blocking=False):
            try:
                if not self._busy:
                    self._forget()
            finally:
                self._lock.release()
