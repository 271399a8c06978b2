# SPDX-License-Identifier: Apache-2.0
"""Throughput report from times and counts: the consumer's waiting time, and a model of the bottleneck."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .decoding import Decoding
from .report import CONSUMER, DISK, GPU, NETWORK, PYTHON, SOURCE, THREADS, HandOver, Progress, Queue, Report, Stage

Times = Mapping[tuple[str, str, str], int]  # (where, name, source) -> nanoseconds on one thread


@dataclass
class Meter:
    """Counters of batches, rows and waiting time at the consumer.

    Attributes:
        inside_s: the consumer's time inside requests, including the preparation of later batches.
    """

    rows: int = 0
    batches: int = 0
    waited_s: float = 0.0
    inside_s: float = 0.0
    first: float = 0.0
    last: float = 0.0
    in_flight: int = 0
    finished: int = 0
    ready: int = 0

    def delivered(
        self, rows: int, asked: float, delivered_at: float, in_flight: int, finished: int, *, is_ahead: bool = False
    ) -> None:
        """Record a batch, and that the consumer waited for it unless it was taken ahead (`is_ahead`).

        ``in_flight`` and ``finished`` are the queue's counts at the time of the request.
        """
        if not self.batches:
            self.first = asked
        self.rows += rows
        self.batches += 1
        if not is_ahead:
            self.waited_s += delivered_at - asked
        self.last = delivered_at
        self.in_flight += in_flight
        self.finished += finished
        self.ready += finished > 0

    def report(
        self, times: Times, seed: int, threads: int, handed_over: tuple[HandOver, ...] = (), *, depth: int = 0,
        place: tuple[int, int, int | None] = (0, 0, None), split: Decoding | None = None,
    ) -> Report:  # fmt: skip
        """Return the report. ``place`` is the epoch, the number of its delivered rows, and its size."""
        rows, span = max(self.rows, 1), self.last - self.first
        own_ms = max(0.0, span - self.inside_s) * 1e3 / rows
        ms = {key: ns / 1e6 / rows for key, ns in times.items()}
        waited = min(1.0, self.waited_s / span) if span > 0 else 0.0  # the last batch may be delivered after the span
        in_sources = self._in_sources(times) / span if span > 0 else 0.0
        model = _BottleneckModel(ms, threads if depth else 1, own_ms, serial=not depth)
        limited_by = "" if not self.batches else _limit(waited, in_sources, model)
        total = sum(times.values()) or 1
        stages = tuple(
            Stage(key[1], key[2], ms[key], ns / total, key[0], model.stage_rate(key), model.gain(key, limited_by))
            for key, ns in sorted(times.items(), key=lambda item: -item[1])
        )
        rate = self.rows / span if span > 0 else 0.0
        epoch, done, size = place
        left = None if size is None or not rate else max(0, size - done) / rate
        count = max(self.batches, 1)
        queue = Queue(depth, self.in_flight / count, self.finished / count, self.ready / count)
        return Report(self.rows, self.batches, span, waited, stages, seed, threads, handed_over, queue,
                      Progress(epoch, done, size, left), limited_by, split)  # fmt: skip

    def _in_sources(self, times: Times) -> float:
        """Return the seconds of the consumer's thread in sources that are not in ``waited_s``: those for later batches.

        They run after the delivery of a batch and before the consumer gets it.
        """
        spent = sum(ns for (where, _, _), ns in times.items() if where == SOURCE) / 1e9
        return min(spent, max(0.0, self.inside_s - self.waited_s))


_WAITS = {DISK: THREADS, NETWORK: PYTHON}  # waits, and the resource that is busy with them
_MAX_WAIT_SHARE = 0.1  # a consumer that waits less than this share of the time is the bottleneck


def _limit(waited: float, in_sources: float, model: _BottleneckModel) -> str:
    """Return the bottleneck from the shares of time in which the consumer waited for batches and for its sources."""
    if waited >= _MAX_WAIT_SHARE:
        return model.slowest()
    return SOURCE if waited + in_sources >= _MAX_WAIT_SHARE else CONSUMER


class _BottleneckModel:
    """Model of the time per row: a resource's time is the sum of its stages', and resources work concurrently.

    Args:
        own_ms: the consumer's own work per row, on the thread that runs sources.
        serial: everything runs on the consumer's thread, one stage after the other.
    """

    def __init__(self, ms: Mapping[tuple[str, str, str], float], threads: int, own_ms: float, *, serial: bool) -> None:
        self._ms, self._threads, self._own, self._serial = ms, threads, own_ms, serial

    def _resource_times(self, without: tuple[str, str, str] | None = None) -> dict[str, float]:
        sums = {THREADS: 0.0, PYTHON: 0.0, SOURCE: 0.0, GPU: 0.0}
        for key, ms in self._ms.items():
            sums[_WAITS.get(key[0], key[0])] += 0.0 if key == without else ms
        sums[THREADS] /= self._threads
        return sums

    def _row_ms(self, without: tuple[str, str, str] | None = None) -> float:
        places = self._resource_times(without)
        if self._serial:
            return sum(places.values()) + self._own
        return max(places[THREADS], places[PYTHON], places[GPU], places[SOURCE] + self._own)

    def slowest(self) -> str:
        """Return the resource with the most time per row, other than the consumer's own work.

        If that resource waits for most of its time, this is what it waits for.
        """
        places = self._resource_times()
        slowest = max(places, key=lambda place: places[place])
        kinds = [slowest, *(wait for wait, place in _WAITS.items() if place == slowest)]
        return max(kinds, key=lambda kind: sum(ms for key, ms in self._ms.items() if key[0] == kind))

    def stage_rate(self, key: tuple[str, str, str]) -> float:
        """Return the rows per second of one stage if it had all threads of its resource."""
        ms = self._ms[key]
        return (self._threads if key[0] in (THREADS, DISK) else 1) * 1e3 / ms if ms else float("inf")

    def gain(self, key: tuple[str, str, str], limited_by: str) -> float:
        """Return the factor by which the total rate would grow without this stage."""
        if limited_by in ("", CONSUMER):
            return 1.0
        rest = self._row_ms(key)
        return self._row_ms() / rest if rest else float("inf")
