# SPDX-License-Identifier: Apache-2.0
"""Threads that a block of a test starts, apart from all others of the process."""

from __future__ import annotations

import os
import time

from idle_clock import IdleClock

_SETTLE_S = 5.0


class StartedThreads:
    """Threads of this process that started after the creation of this object.

    A difference of two counts would not do: the system lists a joined thread for some time longer,
    so threads of earlier tests, and of this one, may leave the list at any moment.
    """

    def __init__(self) -> None:
        self._earlier = _ids()

    def count(self) -> int:
        """Return how many of them run now."""
        return len(_ids() - self._earlier)

    def end(self) -> bool:
        """Return whether all of them end, now or soon."""
        clock = IdleClock()
        while self.count() and clock.tick() < _SETTLE_S:
            time.sleep(0.01)
        return self.count() == 0


def _ids() -> set[str]:
    return set(os.listdir("/proc/self/task"))
