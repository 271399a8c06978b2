# SPDX-License-Identifier: Apache-2.0
"""Number of threads that keeps up with the consumer of a loader.

A training step that takes longer than its batch leaves threads idle. All threads together would compute the batch in a
burst, in which they take cores from the threads that launch kernels. As few threads as are needed spread the work over
the step instead.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

_MEASURED = 8  # latest batches from which the number follows
_SHORT = 2  # of the sorted times of the consumer's steps: longer ones may be pauses (validation, checkpoints)
_RESERVE = 1.5  # threads over those that the measurements require: batches and steps vary
_WAITING = 0.05  # fraction of a step that the consumer may wait for a batch
_STEADY = 256  # batches without waiting after which a raised number may fall again


class Pace:
    """Controller of the number of threads that compute batches at a time.

    Args:
        most: the number of threads; all of them are active until the pace is known, and whenever the consumer waits.
        clock: monotonic time in seconds.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = max(1, most)
        self.active = self.most
        self._clock = clock
        self._least = 1  # raised by waiting
        self._steady = 0  # batches since the consumer has waited
        self._work_s: deque[float] = deque(maxlen=_MEASURED)
        self._steps_s: deque[float] = deque(maxlen=_MEASURED)
        self._requested_at = self._clock()
        self._delivered_at: float | None = None

    def request(self) -> None:
        """Begin the wait for a batch: the consumer requests it."""
        self._requested_at = self._clock()
        if self._delivered_at is not None:
            self._steps_s.append(self._requested_at - self._delivered_at)

    def deliver(self, work_s: float) -> int:
        """End the wait for a batch.

        Args:
            work_s: the time that threads have spent on the batch, in seconds, added over the threads.

        Returns:
            The number of threads that may work on the next batches.
        """
        self._delivered_at = self._clock()
        self._work_s.append(work_s)
        if len(self._steps_s) < _MEASURED:
            return self.active
        step_s = sorted(self._steps_s)[_SHORT]
        if self._delivered_at - self._requested_at > _WAITING * step_s:
            self._least = min(self.most, 2 * max(self.active, self._least))
            self._steady = 0
        else:
            self._steady += 1
            if self._steady >= _STEADY:
                self._steady = 0
                self._least = max(1, self._least // 2)
        required = _RESERVE * max(self._work_s) / step_s if step_s > 0 else math.inf
        self.active = self.most if required >= self.most else max(self._least, math.ceil(required), 1)
        return self.active
