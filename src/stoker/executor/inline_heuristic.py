# SPDX-License-Identifier: Apache-2.0
"""Heuristic for very cheap batches: run them on the caller's thread if a hand-over to a worker would cost more."""

from __future__ import annotations

from .run import Run

_TRIAL = 4  # first batches, which include one-time costs
_MAX_WORK_NS = 15_000
_SLOW_S = 100e-6


class InlineHeuristic:
    """Heuristic that decides whether a run's batches are computed inline, on the caller's thread.

    Only a plan of native steps without files is eligible, because its time does not depend on a disk or on Python. The
    decision is made after 8, 16, 32, ... batches, from the latest half of them, because first batches include one-time
    costs. Two slow batches in a row end inline execution; a single one may have been delayed by another program.

    Attributes:
        is_inline: the current decision.
    """

    def __init__(self) -> None:
        self.is_inline = False
        self._slow_batches = 0
        self._judged_ns = 0

    def observe(self, seconds: float, run: Run | None, count: int, *, reads_files: bool) -> None:
        """Record the duration of the run's ``count``-th batch and update the decision."""
        if self.is_inline:
            self._slow_batches = self._slow_batches + 1 if seconds > _SLOW_S else 0
            self.is_inline = self._slow_batches < 2
        elif count >= _TRIAL and not count & (count - 1) and run is not None and not reads_files and run.may_run_inline:
            before, self._judged_ns = self._judged_ns, sum(run.step_times())
            self.is_inline = count > _TRIAL and self._judged_ns - before < count // 2 * _MAX_WORK_NS
            self._slow_batches = 0
