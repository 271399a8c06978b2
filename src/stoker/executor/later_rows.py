# SPDX-License-Identifier: Apache-2.0
"""Order of later rows, for code that prepares their data before a batch asks for them."""

from __future__ import annotations

import copy

from .schedule import Rows, Schedule

_MAX_AHEAD = 4096  # rows
_CHUNK = 64  # rows that the order is asked for at a time, at least


class LaterRows:
    """Rows after those that a schedule has given, from a copy of it that runs ahead.

    Args:
        schedule: the schedule.
        batch_size: rows of a batch.

    Attributes:
        given: number of rows that the schedule has given, which its user counts.
        end: number of the row after the last one of :meth:`next`.
    """

    def __init__(self, schedule: Schedule, batch_size: int) -> None:
        self._schedule = schedule
        self._chunk = max(batch_size, _CHUNK)
        self._cursor: Schedule | None = None  # None: not begun
        self.given = self.end = 0

    def next(self) -> Rows | None:
        """Return some further rows; None if the order ends, or if they are too far ahead."""
        if self._cursor is None or self.end < self.given:  # an epoch may end with fewer rows than the cursor took
            self._cursor, self.end = copy.copy(self._schedule), self.given
        if self.end - self.given >= _MAX_AHEAD:
            return None
        try:
            rows = self._cursor.next(self._chunk, "go_on")
        except Exception:  # noqa: BLE001 - a user's sampler may raise anything; it does so again for its batch
            return None
        if rows is not None:
            self.end += len(rows)
        return rows

    def forget(self) -> None:
        """Begin again after the rows that the schedule has given: others come next."""
        self._cursor = None
