# SPDX-License-Identifier: Apache-2.0
"""Reading ahead from cold disks: later rows' records are read into the page cache while rows wait for a disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from ..contract.reader import OpenSource
from ..graph.node import Graph
from ..native import _native
from ..settings import read_ahead_bytes
from .later_rows import LaterRows
from .record_prefetch import used_storages
from .report import ReadAheadReport
from .run import Run
from .schedule import Schedule

_THREADS = 8  # they do not wait for bytes, but for the opening of files
_MAX_PENDING = 1024  # records that wait for a thread
_MEASURED_NS = 1_000_000  # least time between two measurements of that share
_COLD_SHARE = 0.05  # share of the time in which rows wait for a disk: reading ahead begins
_JUDGED = 512  # records; if fewer than one in 64 of them came from a disk, reading ahead ends
_MIN_FROM_DISK = _JUDGED // 64


class ReadAhead:
    """Reader ahead of the rows of a graph's readers.

    Rows measure how long they wait for a disk, at no cost while all bytes are in the page cache. When they wait, this
    class computes the order of later rows, and native threads make the system read their records. It ends when the
    records turn out to be in the page cache. Results never depend on it.

    All methods run on the thread that requests batches.
    """

    def __init__(self, graph: Graph, sources: Mapping[int, OpenSource], schedule: Schedule, batch_size: int) -> None:
        self._later = LaterRows(schedule, batch_size)
        self._max_bytes = read_ahead_bytes()
        found = [(column, s.files) for column, s in used_storages(graph, sources) if s.files is not None]
        self._tables: list[tuple[int, _native.Records]] = found if self._max_bytes else []
        self._native: _native.ReadAhead | None = None
        self._is_cold = False  # rows waited for a disk, and no judgement has found the records in the page cache since
        self._waited_ns = self._since_ns = 0
        self._judged = (0, 0)  # records, and those from a disk, at the last judgement

    def pulled(self, count: int, in_flight: Callable[[], int], run: Run) -> None:
        """Note that ``count`` more rows go to the run. Read later ones ahead if rows wait for a disk.

        Args:
            count: number of the rows.
            in_flight: returns the number of the rows before them that are not delivered yet.
            run: the run.
        """
        if not self._tables:
            return
        before = self._later.given
        self._later.given += count
        if self._is_cold:
            self._judge()
        else:
            self._is_cold = self._is_waiting(run)
        if self._is_cold:
            self._fill(before - in_flight())  # rows before it are delivered

    def _is_waiting(self, run: Run) -> bool:
        """Return whether rows have waited for a disk since the last measurement."""
        now = time.perf_counter_ns()
        if now - self._since_ns < _MEASURED_NS:
            return False
        waited = sum(run.disk_waits())
        is_waiting = waited - self._waited_ns > _COLD_SHARE * (now - self._since_ns)
        self._waited_ns, self._since_ns = waited, now
        return is_waiting

    def _judge(self) -> None:
        if self._native is None:
            return
        records, _, from_disk = self._native.counts
        if records - self._judged[0] < _JUDGED:
            return
        self._is_cold = from_disk - self._judged[1] >= _MIN_FROM_DISK
        self._judged = (records, from_disk)
        if not self._is_cold:
            self.drop()

    def _fill(self, begin: int) -> None:
        if self._native is None:
            try:
                self._native = _native.ReadAhead(_THREADS, self._max_bytes)
            except _native.ThreadStartFailed:  # rows read on their own, as on a warm disk
                self._tables = []
                return
        self._native.release(max(begin, 0))
        while self._native.pending < _MAX_PENDING and (rows := self._later.next()) is not None:
            for column, table in self._tables:
                self._native.request(table, rows.indices[column], self._later.end - len(rows))

    def drop(self) -> None:
        """Forget the rows to read ahead: others come next."""
        self._later.forget()
        if self._native is not None:
            self._native.drop()

    def close(self) -> None:
        """End the threads; idempotent."""
        if self._native is not None:
            self._native.close()

    def report(self) -> ReadAheadReport | None:
        """Return what was read ahead; None if nothing was."""
        if self._native is None:
            return None
        records, size, from_disk = self._native.counts
        return ReadAheadReport(records, size, from_disk, self._is_cold)
