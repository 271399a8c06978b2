# SPDX-License-Identifier: Apache-2.0
"""Clock that runs slower on a busy machine: limits of time hold on an idle machine and stretch under load."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator

_SAMPLE_S = 0.02
_LONGEST_S = 0.5  # between two samples: in a longer time the process was halted, or waited for a core
# For waits that end by themselves: only a deadlock takes as long. Twice it is less than the limit of `make test`.
HANG_S = 240.0


class IdleClock:
    """Seconds in which a thread could have run: where three runnable threads share a core, three seconds count as one.

    Call :meth:`tick` often: each call assumes that the load was the same since the one before.

    Args:
        longest_s: longest time between two calls that counts, in seconds of the wall clock.
    """

    def __init__(self, longest_s: float = float("inf")) -> None:
        self._seconds, self._longest_s = 0.0, longest_s
        self._at = time.monotonic()

    def tick(self) -> float:
        """Return the seconds since the creation of the clock."""
        now = time.monotonic()
        elapsed = min(now - self._at, self._longest_s)
        self._seconds += elapsed / max(1.0, _count_runnable() / len(os.sched_getaffinity(0)))
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
def sampled_clock() -> Iterator[Callable[[], float]]:
    """Yield a clock that a thread samples. It stands still while the process is halted (SIGSTOP)."""
    clock, over, elapsed = IdleClock(_LONGEST_S), threading.Event(), 0.0

    def sample() -> None:
        nonlocal elapsed
        while not over.wait(_SAMPLE_S):
            elapsed = clock.tick()

    sampler = threading.Thread(target=sample)
    sampler.start()
    try:
        yield lambda: elapsed
    finally:
        over.set()
        sampler.join(HANG_S)


@contextlib.contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Fail if the block takes longer than ``seconds`` of :func:`sampled_clock`."""
    with sampled_clock() as clock:
        yield
        assert clock() < seconds
