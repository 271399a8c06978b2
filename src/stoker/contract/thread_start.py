# SPDX-License-Identifier: Apache-2.0
"""Start of Python threads under a limit of the system, and threads that close what the program has dropped."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable

from .errors import ResourceError

_CLOSING_S = 5.0


def start_thread(thread: threading.Thread) -> None:
    """Start a thread.

    Raises:
        ResourceError: the operating system refuses the thread.
    """
    try:
        thread.start()
    except RuntimeError as error:  # Python's text is "can't start new thread"
        raise ResourceError(
            f"expected to start the thread `{thread.name}`, got {error} from the operating system. Lower "
            "`num_threads`, or raise the limit: of processes and threads (`ulimit -u`, a container's pids limit) or of "
            "memory (`ulimit -v`)"
        ) from error


def close_dropped(close: Callable[[], None]) -> None:
    """Close an object that nothing refers to any more, from its ``__del__``.

    The garbage collector may run in a thread that holds a lock for which the object's own threads wait. So another
    thread closes the object, and this one waits for it for a few seconds at most.

    Args:
        close: the function that closes it.
    """
    running, waiting = threading.Lock(), [close]
    running.acquire()

    def run() -> None:
        try:
            waiting.pop()()  # so that the collector, which goes on after the release, finds no reference here
        finally:
            running.release()

    try:
        # `Thread.start` takes locks of `threading`, which the collector may have interrupted.
        _thread.start_new_thread(run, ())
    except RuntimeError:  # the system refuses a thread
        close()
        return
    running.acquire(timeout=_CLOSING_S)
