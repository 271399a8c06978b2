# SPDX-License-Identifier: Apache-2.0
"""Batches that take less than handing them to another thread: whether they are made where they are asked for."""

from __future__ import annotations

from .run import Run

_TRIAL = 4  # batches that pay for what is only done once
_TINY_NS = 15_000
_LONG_S = 100e-6


class Tiny:
    """Judges a run's batches. Only a plan of native steps without files is eligible: its time does not depend on a disk
    or on Python. It is judged after 8 batches, 16, 32 and so on, by the latest half of them, since a first batch pays
    for more. Two batches in a row that take long end it; one may have been stretched by another program.

    Attributes:
        found: whether they are.
    """

    def __init__(self) -> None:
        self.found = False
        self._long_batches = 0
        self._judged_ns = 0

    def settle(self, seconds: float, run: Run | None, count: int, *, reads_files: bool) -> None:
        """A batch took so long; it was the run's ``count``-th."""
        if self.found:
            self._long_batches = self._long_batches + 1 if seconds > _LONG_S else 0
            self.found = self._long_batches < 2
        elif count >= _TRIAL and not count & (count - 1) and run is not None and not reads_files and run.is_light:
            before, self._judged_ns = self._judged_ns, sum(run.step_times())
            self.found = count > _TRIAL and self._judged_ns - before < count // 2 * _TINY_NS
            self._long_batches = 0
