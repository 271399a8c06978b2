# SPDX-License-Identifier: Apache-2.0
"""Clock that runs slower on a busy machine: limits of time hold on an idle machine and stretch under load."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

_SAMPLE_S = 0.02
# For waits that end by themselves: only a deadlock takes as long. Twice it is less than the limit of `make test`.
HANG_S = 240.0


class IdleClock:
    """Seconds in which a thread could have run: where three runnable threads share a core, three seconds count as one.

    Call :meth:`tick` often: each call assumes that the load was the same since the one before.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._at = time.monotonic()

    def tick(self) -> float:
        """Return the seconds since the creation of the clock."""
        now = time.monotonic()
        self._seconds += (now - self._at) / max(1.0, _count_runnable() / len(os.sched_getaffinity(0)))
        self._at = now
        return self._seconds


def _count_runnable() -> int:
    """Return the number of threads of the machine that run or could run, without the one that asks."""
    try:
        with open("/proc/loadavg", encoding="ascii") as file:
            return int(file.read().split()[3].partition("/")[0]) - 1
    except OSError:  # not Linux: all limits are seconds of the wall clock
        return 0


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fail if the block takes longer than ``seconds`` of an :class:`IdleClock`, which a thread samples."""
    clock, over, elapsed = IdleClock(), threading.Event(), 0.0

    def sample() -> None:
        nonlocal elapsed
        while not over.wait(_SAMPLE_S):
            elapsed = clock.tick()

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield
    finally:
        over.set()
        sampler.join(HANG_S)
    assert clock.tick() < seconds
