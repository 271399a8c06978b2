# SPDX-License-Identifier: Apache-2.0
"""Worker processes, as sources see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol


class WorkerPool(Protocol):
    """Interface of the worker processes that run a source's Python code."""

    @property
    def count(self) -> int:
        """Return the number of worker processes."""
        ...

    def add(self, producer: Callable[[Any], Any], *, stateful: bool) -> int:
        """Register a producer before the start and return its number. A stateful producer stays in one process."""
        ...

    def submit(self, producer: int, request: Any) -> Any:
        """Send a request to a producer and return a task for :meth:`result`."""
        ...

    def result(self, task: Any) -> Any:
        """Wait for a task and return its result."""
        ...

    def ready(self, task: Any) -> bool:
        """Return whether :meth:`result` would return without waiting."""
        ...

    def wait(self, timeout_s: float = ...) -> None:
        """Wait until a result arrives, or for a short time."""
        ...

    def drop(self, task: Any) -> None:
        """Discard a task: its result is not needed."""
        ...

    def start(self) -> None:
        """Start the processes if they do not run. With "fork", call it before the program starts other threads."""
        ...

    def close(self) -> None:
        """End the processes; idempotent."""
        ...
