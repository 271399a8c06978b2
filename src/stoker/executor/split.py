# SPDX-License-Identifier: Apache-2.0
"""How rows that both the CPU and the GPU can decode are shared out between them, by what is measured.

Both give the same bits, so the split is a matter of speed alone. Two cases:

- The consumer is the limit: batches are ready when it asks for them. Then rows go to the CPU for as long as batches
  stay ready and the consumer does not slow down, so that the GPU is left to it.
- The pipeline is the limit: the consumer waits. Then rows are shared so that CPU and GPU finish a batch together.

It moves by windows of batches, half of the way that a model of both sides asks for, and looks at what came of it: a
move after which the consumer waits, or the rate falls, is taken back, and not tried again for a while that grows each
time. Between the two cases lies a band in which nothing is moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..contract.step import Native
from .report import Decoding, Meter

WINDOW_BATCHES = 16
WINDOW_S = 0.1
_FIRST = 1 / 64  # decoded by the CPU at first, to learn what that costs
_READY = 0.02  # a consumer that waits for a smaller part of the time is the limit
_WAITS = 0.05  # and one that waits for a larger part is not
_IDLE, _BUSY = 0.85, 0.93  # parts of the threads' time: below, the GPU is what limits; above, the CPU
_SPARE = 0.8  # of the threads' time may be used while the consumer is the limit
_WORSE = 0.015  # a change of the rate that counts
_STEP = 0.02  # smaller moves are not made
_NEAR = 0.1  # so far, it goes the whole way
_MEMORY = 64  # windows that the best rate is remembered for
_PATIENCE, _MOST_PATIENCE = 8, 256  # windows


@dataclass(frozen=True)
class Window:
    """What was measured over some batches.

    Attributes:
        rows: delivered.
        seconds: they took.
        waited: part of the time in which the consumer waited for data.
        ready: part of the requests that found batches finished: all but one of those under way.
        busy_s: time of worker threads per row.
        cpu_s: time of a worker thread to decode one row; 0 if no row was.
        gpu_s: the GPU's time per row in decoding, for rows that it decoded; 0 if it is not known.
        gpu_rest_s: the GPU's time per row in all other stages.
    """

    rows: int
    seconds: float
    waited: float
    ready: float
    busy_s: float
    cpu_s: float
    gpu_s: float = 0.0
    gpu_rest_s: float = 0.0

    @property
    def row_s(self) -> float:
        return self.seconds / max(1, self.rows)


class Split:
    """The CPU's part of the rows, and why it is that.

    Args:
        threads: worker threads that have a core for themselves while the consumer runs.
        load: the GPU's part, if it is fixed; None: by measured speed.
        utilization: the most of the GPU's time that the pipeline should take, 0 to 1.

    Attributes:
        cpu_share: 0 to 1.
        why: in words.
        moves: how often it was changed.
    """

    def __init__(self, threads: float, load: float | None, utilization: float = 1.0) -> None:
        self._threads = threads
        self._utilization = utilization
        self.fixed = load is not None
        self.cpu_share = _FIRST if load is None else 1.0 - load
        self.why = "fixed by `gpu_decoder_load`" if self.fixed else "nothing is measured yet"
        self.moves = 0
        self._before: tuple[float, float, bool] | None = None  # share, seconds per row, consumer: before the last move
        self._best = (0.0, 0.0, 0)  # with the consumer as the limit: share, seconds per row, windows ago
        self._patience = _PATIENCE
        self._rest = 0  # windows until a move that was taken back may be tried again
        self._raised = True  # it was one upwards
        self._gpu_row_s = (0.0, _MEMORY)  # the GPU's time per row if it decoded all, windows ago
        self._cpu_s = 0.0

    def observe(self, window: Window) -> bool:
        """Learn from a window that ran with :attr:`cpu_share` all along; whether the share was changed."""
        if self.fixed:
            return False
        self._cpu_s = window.cpu_s or self._cpu_s
        self._rest = max(0, self._rest - 1)
        consumer = window.waited <= _READY
        target, why = self._judged(window, consumer) or self._crept(window, consumer) or self._wanted(window, consumer)
        floor = self._floor(window)
        if target < floor:
            target, why = floor, f"the pipeline may take {self._utilization:.0%} of the GPU (`gpu_utilization`)"
        return self._move(target, why, window, consumer)

    def _move(self, target: float, why: str, window: Window, consumer: bool) -> bool:
        target = min(1.0, max(0.0, target))
        self.why = why
        end = target in (0.0, 1.0) and target != self.cpu_share
        if abs(target - self.cpu_share) < _STEP and not end:
            return False
        self._before = (self.cpu_share, window.row_s, consumer)
        self.cpu_share = target
        self.moves += 1
        return True

    def _judged(self, window: Window, consumer: bool) -> tuple[float, str] | None:
        """The share before the last move, if that made things worse."""
        if self._before is None:
            return None
        (share, row_s, was_consumer), self._before = self._before, None
        spoiled = was_consumer and window.waited > _WAITS and self.cpu_share > share
        # Where the consumer's own speed has changed (another phase of the training), nothing is learnt from it.
        slower = was_consumer == consumer and row_s * (1 + _WORSE) < window.row_s < 2 * row_s
        if not (spoiled or slower):
            return None
        self._wait(raised=self.cpu_share > share)
        return share, "a move was taken back, since the rate fell" if slower else "batches came late"

    def _wait(self, *, raised: bool) -> None:
        self._raised = raised
        self._rest, self._patience = self._patience, min(_MOST_PATIENCE, 2 * self._patience)

    def _crept(self, window: Window, consumer: bool) -> tuple[float, str] | None:
        """The share that the consumer was fastest with, if several moves, each too small to tell, slowed it down."""
        share, row_s, age = self._best
        known = consumer and age < _MEMORY and row_s < window.row_s < 2 * row_s
        if not known or self.cpu_share <= share:
            self._best = (self.cpu_share, window.row_s, 0) if consumer else (0.0, 0.0, _MEMORY)
            return None
        self._best = (share, row_s, age + 1)
        if window.row_s < row_s * (1 + _WORSE):
            return None
        self._wait(raised=True)
        return share, "moves were taken back, since the rate fell"

    def _wanted(self, window: Window, consumer: bool) -> tuple[float, str]:
        share = self.cpu_share
        if consumer:
            why = "the consumer is the limit: the CPU takes rows while batches stay ready"
            if (self._rest and self._raised) or window.ready < 0.75 or not self._cpu_s:
                return share, why
            most = self._most(window)
            return (self._towards(most) if most > share else share), why
        if window.waited < _WAITS:
            return share, "batches are just in time"
        even = self._balanced(window)
        why = "the pipeline is the limit: CPU and GPU finish a batch together"
        if self._rest:
            even = min(share, even) if self._raised else max(share, even)
        return even, why

    def _most(self, window: Window) -> float:
        """The largest share that leaves the threads time to spare at the consumer's rate."""
        others = self._others(window)
        return min(1.0, (_SPARE * self._threads * window.row_s - others) / self._cpu_s)

    def _others(self, window: Window) -> float:
        """Time of threads per row for all but decoding."""
        return max(0.0, window.busy_s - self.cpu_share * self._cpu_s)

    def _balanced(self, window: Window) -> float:
        share = self.cpu_share
        used = window.busy_s / (self._threads * window.row_s)
        decoding = window.gpu_s / (window.gpu_s + window.gpu_rest_s) if window.gpu_s else 0.8
        gpu_row_s, age = self._gpu_row_s
        if used <= _BUSY:  # not the CPU, so the GPU is the limit: its time per row is what a row takes now
            gpu_row_s, age = window.row_s / (1 - share * decoding), 0
        self._gpu_row_s = gpu_row_s, age + 1
        if (used > _IDLE and age == 0) or not self._cpu_s:
            return share
        if age >= _MEMORY:
            return share - max(_STEP, share / 4)
        even = gpu_row_s - self._others(window) / self._threads
        return self._towards(even / (self._cpu_s / self._threads + gpu_row_s * decoding))

    def _towards(self, target: float) -> float:
        way = min(1.0, max(0.0, target)) - self.cpu_share
        return self.cpu_share + (way if abs(way) < _NEAR else max(-0.25, min(0.25, way / 2)))

    def _floor(self, window: Window) -> float:
        """The smallest share with which the GPU is not used more than allowed."""
        if self._utilization >= 1.0 or not window.gpu_s:
            return 0.0
        return 1.0 - max(0.0, self._utilization * window.row_s - window.gpu_rest_s) / window.gpu_s


class Decoder(Protocol):
    """A decoder of both devices; see ``native/gpu_either.hpp``."""

    cpu_share: float

    @property
    def rows_on_gpu(self) -> int:
        """Rows that the GPU has made."""

    @property
    def rows_on_cpu(self) -> int:
        """Rows that the CPU has made."""

    @property
    def cpu_ns(self) -> int:
        """Time of threads in these."""

    @property
    def reasons(self) -> dict[str, int]:
        """Why the CPU made rows, and how many for each reason."""


class Measured(Protocol):
    """A run whose times are measured (:class:`~stoker.executor.run.Run`)."""

    def step_times(self) -> list[int]:
        """Nanoseconds of threads per step."""

    def device_times(self) -> tuple[int, list[float]]:
        """Nanoseconds of the GPU per step, in batches with so many rows."""


@dataclass(frozen=True)
class _Total:
    """Sums since the beginning; windows are differences of two."""

    rows: int = 0
    batches: int = 0
    at: float = 0.0
    waited_s: float = 0.0
    busy_ns: int = 0
    on_cpu: int = 0
    on_gpu: int = 0
    cpu_ns: int = 0
    measured: int = 0
    decoding_ns: float = 0.0
    device_ns: float = 0.0


class Sharing:
    """Feeds a :class:`Split` with windows of a run, and sets what it decides.

    Args:
        steps: the plan's.
        depth: batches under way when a share is changed, which were begun with the one before.
    """

    def __init__(self, split: Split, decoders: Sequence[Decoder], steps: Sequence[object], depth: int) -> None:
        self.split = split
        self.decoders = decoders
        self._decoding = [i for i, s in enumerate(steps) if s.on_gpu and isinstance(s.body, Native)]  # type: ignore[attr-defined]
        self._depth = depth
        self._from: _Total | None = None
        self._skip = depth + 2
        self._ready = 0
        self._gpu_s = self._gpu_rest_s = 0.0
        self._set()

    def _set(self) -> None:
        for decoder in self.decoders:
            decoder.cpu_share = self.split.cpu_share

    def report(self) -> Decoding:
        """Where rows were decoded, and why."""
        reasons: dict[str, int] = {}
        for decoder in self.decoders:
            for reason, rows in decoder.reasons.items():
                reasons[reason] = reasons.get(reason, 0) + rows
        on_gpu = sum(d.rows_on_gpu for d in self.decoders)
        on_cpu = sum(d.rows_on_cpu for d in self.decoders)
        return Decoding(on_gpu, on_cpu, reasons, self.split.cpu_share, self.split.why)

    def delivered(self, run: Measured, meter: Meter, under_way: int, finished: int) -> None:
        """A batch was handed over; the last two are what the queue held when it was asked for."""
        if self.split.fixed:
            return
        if self._skip:
            self._skip -= 1
            return
        self._ready += finished >= max(1, under_way - 1)
        begun = self._from
        if begun is not None:
            batches = meter.batches - begun.batches
            if batches < WINDOW_BATCHES or meter.last - begun.at < WINDOW_S:
                return
        now = self._total(run, meter)
        ready, self._ready = self._ready, 0
        self._from = now
        if begun is not None and self.split.observe(self._window(begun, now, ready)):
            self._set()
            self._skip, self._from = self._depth + 2, None

    def _total(self, run: Measured, meter: Meter) -> _Total:
        measured, device = run.device_times()
        decoders = self.decoders
        return _Total(
            meter.rows, meter.batches, meter.last, meter.waited_s, sum(run.step_times()),
            sum(d.rows_on_cpu for d in decoders), sum(d.rows_on_gpu for d in decoders), sum(d.cpu_ns for d in decoders),
            measured, sum(device[i] for i in self._decoding), sum(device),
        )  # fmt: skip

    def _window(self, a: _Total, b: _Total, ready: int) -> Window:
        rows, seconds = b.rows - a.rows, b.at - a.at
        made = b.on_cpu - a.on_cpu + b.on_gpu - a.on_gpu
        part = (b.on_gpu - a.on_gpu) / max(1, made)  # of the rows, the GPU decoded
        measured = b.measured - a.measured
        if measured and part:
            self._gpu_s = 1e-9 * (b.decoding_ns - a.decoding_ns) / measured / part
        if measured:
            self._gpu_rest_s = 1e-9 * (b.device_ns - a.device_ns - b.decoding_ns + a.decoding_ns) / measured
        on_cpu = b.on_cpu - a.on_cpu
        return Window(
            rows, seconds, (b.waited_s - a.waited_s) / seconds, ready / max(1, b.batches - a.batches),
            1e-9 * (b.busy_ns - a.busy_ns) / max(1, rows), 1e-9 * (b.cpu_ns - a.cpu_ns) / on_cpu if on_cpu else 0.0,
            self._gpu_s, self._gpu_rest_s,
        )  # fmt: skip
