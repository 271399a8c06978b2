# SPDX-License-Identifier: Apache-2.0
"""Processes of ``torch.multiprocessing.spawn``: each enables the take-over before it calls the script's function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class TakenOver:
    """Function of a script for the processes that torch spawns; it is pickled with the state of the parent process."""

    def __init__(self, function: Callable[..., Any], enable: Callable[[Any], None], state: Any) -> None:
        self._function = function
        self._enable = enable
        self._state = state

    def __call__(self, *args: Any) -> Any:
        self._enable(self._state)
        return self._function(*args)


def start_processes(enable: Callable[[Any], None], state: Callable[[], Any]) -> Callable[..., Any]:
    """Return the hook of ``torch.multiprocessing.start_processes``.

    Args:
        enable: enables the take-over in a process; pickled by its name.
        state: returns the argument of ``enable``.
    """

    def start(original: Callable[..., Any], fn: Any, *args: Any, **kwargs: Any) -> Any:
        return original(fn if isinstance(fn, TakenOver) else TakenOver(fn, enable, state()), *args, **kwargs)

    return start
