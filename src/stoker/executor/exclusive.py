# SPDX-License-Identifier: Apache-2.0
"""Who may use a running pipeline: one thread at a time, in the process that it belongs to, until it is closed."""

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


def alone(method: Callable[Concatenate[E, P], T]) -> Callable[Concatenate[E, P], T]:
    """One thread at a time, and only in the process that the run belongs to.

    Raises:
        StateError: the pipeline is closed, or the call comes from its own source.
    """

    @functools.wraps(method)
    def waiting(self: E, /, *args: P.args, **kwargs: P.kwargs) -> T:
        self._check_usable()  # first: in a child process the lock may be held for ever
        with self._lock:
            if self._busy:
                raise StateError("a pipeline cannot be asked for batches, or moved, by one of its own sources")
            try:
                self._busy = True
                return method(self, *args, **kwargs)
            finally:
                self._busy = False
                if self._closed:
                    self._forget()

    return waiting


class Exclusive(ABC):
    """What methods that run :func:`alone` use. Any thread may close it, also one that runs such a method."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._busy = False
        self._closed = False

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used."""
        return self._closed

    def _check_usable(self) -> None:
        """StateError if it cannot be used any more, or not in this process."""
        if self._closed:
            raise StateError("the pipeline is closed")

    @abstractmethod
    def _forget(self) -> None:
        """Let go of all that is under way: it is closed, and no method runs."""

    def _forget_if_idle(self) -> None:
        """:meth:`_forget`, now or when the method that runs leaves."""
        if self._lock.acquire(blocking=False):
            try:
                if not self._busy:
                    self._forget()
            finally:
                self._lock.release()
