# SPDX-License-Identifier: Apache-2.0
"""From times and counts to a report: what the consumer saw, and a model of what limits the rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .decoding import Decoding
from .report import CONSUMER, GPU, PYTHON, SOURCE, THREADS, HandOver, Progress, Queue, Report, Stage

Times = Mapping[tuple[str, str, str], int]  # (where, name, source) -> nanoseconds on one thread


@dataclass
class Meter:
    """Counts what the consumer sees.

    Attributes:
        inside_s: time in which the consumer was in a request, also while it prepared later batches.
    """

    rows: int = 0
    batches: int = 0
    waited_s: float = 0.0
    inside_s: float = 0.0
    first: float = 0.0
    last: float = 0.0
    under_way: int = 0
    finished: int = 0
    ready: int = 0

    def delivered(self, rows: int, asked: float, given: float, under_way: int, finished: int) -> None:
        """A batch was handed over; the last two are what the queue held when it was asked for."""
        if not self.batches:
            self.first = asked
        self.rows += rows
        self.batches += 1
        self.waited_s += given - asked
        self.last = given
        self.under_way += under_way
        self.finished += finished
        self.ready += finished > 0

    def report(
        self, times: Times, seed: int, threads: int, handed_over: tuple[HandOver, ...] = (), *, depth: int = 0,
        place: tuple[int, int, int | None] = (0, 0, None), split: Decoding | None = None,
    ) -> Report:  # fmt: skip
        """What has run; ``place`` is the epoch, its rows that were delivered, and how many it has."""
        rows, span = max(self.rows, 1), self.last - self.first
        own_ms = max(0.0, span - self.inside_s) * 1e3 / rows
        ms = {key: ns / 1e6 / rows for key, ns in times.items()}
        waited = self.waited_s / span if span > 0 else 0.0
        model = _Model(ms, threads if depth else 1, own_ms, serial=not depth)
        limited_by = "" if not self.batches else CONSUMER if waited < _PATIENT else model.slowest()
        total = sum(times.values()) or 1
        stages = tuple(
            Stage(key[1], key[2], ms[key], ns / total, key[0], model.alone(key), model.gain(key, limited_by))
            for key, ns in sorted(times.items(), key=lambda item: -item[1])
        )
        rate = self.rows / span if span > 0 else 0.0
        epoch, done, size = place
        left = None if size is None or not rate else max(0, size - done) / rate
        count = max(self.batches, 1)
        queue = Queue(depth, self.under_way / count, self.finished / count, self.ready / count)
        return Report(self.rows, self.batches, span, waited, stages, seed, threads, handed_over, queue,
                      Progress(epoch, done, size, left), limited_by, split)  # fmt: skip


_PATIENT = 0.1  # a consumer that waits less than this share of the time is what limits


class _Model:
    """How long a row takes if every place is as slow as the sum of its stages, and places work at the same time.

    Args:
        own_ms: the consumer's own work per row, on the thread where sources run.
        serial: everything runs on the consumer's thread, one after the other.
    """

    def __init__(self, ms: Mapping[tuple[str, str, str], float], threads: int, own_ms: float, *, serial: bool) -> None:
        self._ms, self._threads, self._own, self._serial = ms, threads, own_ms, serial

    def _places(self, without: tuple[str, str, str] | None = None) -> dict[str, float]:
        sums = {THREADS: 0.0, PYTHON: 0.0, SOURCE: 0.0, GPU: 0.0}
        for key, ms in self._ms.items():
            sums[key[0]] += 0.0 if key == without else ms
        sums[THREADS] /= self._threads
        return sums

    def _row_ms(self, without: tuple[str, str, str] | None = None) -> float:
        places = self._places(without)
        if self._serial:
            return sum(places.values()) + self._own
        return max(places[THREADS], places[PYTHON], places[GPU], places[SOURCE] + self._own)

    def slowest(self) -> str:
        """The place that takes longest; the consumer's own work is not among them."""
        places = self._places()
        return max(places, key=lambda place: places[place])

    def alone(self, key: tuple[str, str, str]) -> float:
        """Rows per second of one stage with all threads of its place."""
        ms = self._ms[key]
        return (self._threads if key[0] == THREADS else 1) * 1e3 / ms if ms else float("inf")

    def gain(self, key: tuple[str, str, str], limited_by: str) -> float:
        """What the rate would be multiplied by without this stage."""
        if limited_by in ("", CONSUMER):
            return 1.0
        rest = self._row_ms(key)
        return self._row_ms() / rest if rest else float("inf")
