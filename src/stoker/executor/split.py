# SPDX-License-Identifier: Apache-2.0
"""Division of rows between CPU and GPU decoders, by measurement.

Both decoders give the same bits, so the share affects only the rate of delivered batches. There are two cases:

- The consumer is the bottleneck: batches are ready when it requests them. Rows decoded on the CPU then leave GPU time
  to the consumer, but take host time that its launches may need. Only a measurement shows which effect is larger.
- The pipeline is the bottleneck: the consumer waits. The share should make CPU and GPU finish a batch together. The
  times per row on both sides give that share.

Waiting alone does not distinguish the cases: a training that queues its GPU work early waits for batches, too, whose
own GPU work waits for the training's. So in both cases the first candidate is to decode all rows on the CPU, if the
threads can do so at the present rate. Half of the rows may gain nothing where all of them do, because the time of the
GPU's decoder hardly falls with the number of its rows.

Every change is an A/B comparison: windows of batches with the old and the new share alternate, twice each. The new
share stays if it was faster both times. If it was not, the next comparison follows after an interval that doubles each
time, so that comparisons cost little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..contract.codec import BalancedKernel
from ..contract.step import Native, Step
from .decoding import Decoding
from .meter import Meter

WINDOW_BATCHES = 16
WINDOW_S = 0.1
_FIRST = 1 / 64  # initial share of the CPU, to measure its cost
_READY = 0.02  # a consumer that waits for a smaller part of the time is the bottleneck
_WAITS = 0.05  # a consumer that waits for a larger part is not
_IDLE, _BUSY = 0.85, 0.93  # used parts of the threads' time: below, the GPU is the bottleneck; above, the CPU
_WHOLE = 0.9  # all rows are tried on the CPU if that takes at most this part of the threads' time
_SPARE = 0.8  # part of the threads' time that decoding may use while the consumer is the bottleneck
_GAIN = 0.004  # minimum gain for a larger share of the CPU
_LOSS = 0.05  # loss that ends an A/B comparison early
_STEP = 0.02  # minimum change of the share
_NEAR = 0.1  # below this distance, the share moves to its target in one step
_PATIENCE, _MAX_PATIENCE = 4, 512  # windows between comparisons
_MEMORY = 64  # windows


@dataclass(frozen=True)
class Window:
    """Measurements over some batches.

    Attributes:
        rows: rows delivered.
        seconds: duration.
        waited: part of the time in which the consumer waited for data.
        ready: part of the requests that found all but one of the batches in flight finished.
        busy_s: time of worker threads per row.
        cpu_s: time of a worker thread to decode one row; 0 if none was decoded.
        gpu_s: GPU time to decode one row; 0 if unknown.
        gpu_rest_s: GPU time per row in all other stages.
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


@dataclass
class _Comparison:
    """A/B comparison of two shares: seconds per row with the old and the new share, alternating."""

    old: float
    new: float
    with_old: list[float]
    with_new: list[float]

    def verdict(self) -> bool | None:
        """Return whether the new share is better; None if more windows are needed."""
        rise = sum(self.with_new) / len(self.with_new) - sum(self.with_old) / len(self.with_old)
        if rise > _LOSS * self.with_old[0]:
            return False
        if len(self.with_new) < 2:
            return None
        if self.new < self.old:  # the same rate with less CPU work
            return rise < _GAIN / 2 * self.with_old[0]
        return max(self.with_new) < (1 - _GAIN) * min(self.with_old)

    def __str__(self) -> str:
        change = len(self.with_new) * sum(self.with_old) / (len(self.with_old) * sum(self.with_new)) - 1
        return f"with {self.new:.0%} on the CPU instead of {self.old:.0%} the rate changed by {change:+.1%}"


class Split:
    """Share of the CPU in decoding, and the reason for it.

    Args:
        threads: worker threads that have a core each while the consumer runs.
        load: fixed share of the GPU; None: chosen by measured speed.
        utilization: maximum share of the GPU's time that the pipeline should take, 0 to 1.

    Attributes:
        cpu_share: 0 to 1.
        why: explanation in words.
    """

    def __init__(self, threads: float, load: float | None, utilization: float = 1.0) -> None:
        self._threads = threads
        self._utilization = utilization
        self.fixed = load is not None
        self.cpu_share = _FIRST if load is None else 1.0 - load
        self.why = "fixed by `gpu_decoder_load`" if self.fixed else "nothing is measured yet"
        self._comparison: _Comparison | None = None
        self._patience = _PATIENCE
        self._pause = 0  # windows until the next comparison
        self._try_smaller = False  # the last comparison failed upwards, so a smaller share or step is next
        self._cpu_s = 0.0
        self._gpu_row_s = (0.0, _MEMORY)  # (GPU time per row if it decoded all rows, age in windows)

    def observe(self, window: Window) -> bool:
        """Record a window that ran with :attr:`cpu_share`. Return whether the share changed."""
        if self.fixed:
            return False
        before, known = self.cpu_share, self._cpu_s > 0
        self._cpu_s = window.cpu_s or self._cpu_s
        if not known:
            self.cpu_share = 0.0 if self._cpu_s else self.cpu_share
        elif self._comparison is not None:
            self._continue(self._comparison, window)
        elif self._pause:
            self._pause -= 1
        else:
            self._begin(window)
        floor = self._floor(window)
        if self.cpu_share < floor - _STEP / 2:
            self.cpu_share, self._comparison = floor, None
            self.why = f"the pipeline may take {self._utilization:.0%} of the GPU (`gpu_utilization`)"
        return self.cpu_share != before

    def _begin(self, window: Window) -> None:
        share = self.cpu_share
        target = min(1.0, max(self._floor(window), self._next_share(window)))
        if abs(target - share) >= _STEP or (target in (0.0, 1.0) and target != share):
            self._comparison = _Comparison(share, target, [window.row_s], [])
            self.cpu_share = target
            self.why = f"{target:.0%} on the CPU is being compared with {share:.0%}"

    def _continue(self, comparison: _Comparison, window: Window) -> None:
        new = self.cpu_share == comparison.new
        (comparison.with_new if new else comparison.with_old).append(window.row_s)
        better = comparison.verdict() if new else None
        if better is None:
            self.cpu_share = comparison.old if new else comparison.new
            return
        self._comparison, self.why = None, str(comparison)
        self.cpu_share = comparison.new if better else comparison.old
        if better:
            self._patience = max(_PATIENCE, self._patience // 2)
        else:
            self._pause, self._patience = self._patience, min(_MAX_PATIENCE, 2 * self._patience)
            self._try_smaller = not self._try_smaller

    def _next_share(self, window: Window) -> float:
        """Return the share that the next comparison should measure."""
        share = self.cpu_share
        if not self._try_smaller and self._others(window) + self._cpu_s <= _WHOLE * self._threads * window.row_s:
            return 1.0
        if window.waited > _WAITS:
            return self._balanced(window)
        largest = self._max_share(window) if window.waited <= _READY and window.ready >= 0.75 else share
        if share and (self._try_smaller or largest <= share + _STEP):
            return 0.0 if share < _NEAR else share / 2
        return share + (largest - share) / 2 if largest - share > _NEAR else largest

    def _max_share(self, window: Window) -> float:
        """Return the largest share that leaves the threads spare time at the consumer's rate."""
        others = self._others(window)
        return min(1.0, (_SPARE * self._threads * window.row_s - others) / self._cpu_s)

    def _others(self, window: Window) -> float:
        """Return the threads' time per row for everything except decoding."""
        return max(0.0, window.busy_s - self.cpu_share * self._cpu_s)

    def _balanced(self, window: Window) -> float:
        share = self.cpu_share
        used = window.busy_s / (self._threads * window.row_s)
        decoding = window.gpu_s / (window.gpu_s + window.gpu_rest_s) if window.gpu_s else 0.8
        gpu_row_s, age = self._gpu_row_s
        # The CPU is not the bottleneck, so the GPU is: its time per row equals the current time per row.
        if used <= _BUSY:
            gpu_row_s, age = window.row_s / (1 - share * decoding), 0
        self._gpu_row_s = gpu_row_s, age + 1
        if used > _IDLE and age == 0:
            return share
        if age >= _MEMORY:
            return share - max(_STEP, share / 4)
        even = gpu_row_s - self._others(window) / self._threads
        even = min(1.0, max(0.0, even / (self._cpu_s / self._threads + gpu_row_s * decoding)))
        return even if abs(even - share) < _NEAR else (share + even) / 2

    def _floor(self, window: Window) -> float:
        """Return the smallest share that keeps the GPU within its allowed utilization."""
        if self._utilization >= 1.0 or not window.gpu_s:
            return 0.0
        return min(1.0, 1.0 - max(0.0, self._utilization * window.row_s - window.gpu_rest_s) / window.gpu_s)


class MeasuredRun(Protocol):
    """Interface of a run whose times are measured (:class:`~stoker.executor.run.Run`)."""

    def step_times(self) -> list[int]:
        """Return the threads' nanoseconds per step."""

    def device_times(self) -> tuple[int, list[float]]:
        """Return the number of measured rows, and the GPU's nanoseconds per step for them."""


@dataclass(frozen=True)
class _Total:
    """Sums since the beginning. A window is the difference of two."""

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


def _is_balanced(step: Step) -> bool:
    return isinstance(step.body, Native) and step.body.gpu is not None and step.body.gpu.balanced


class SplitController:
    """Controller that measures windows of a run for a :class:`Split` and applies its decisions.

    Args:
        steps: the plan's steps. The GPU time of balanced steps (``GpuForm.balanced``) counts as decoding.
        depth: batches in flight when a share changes; these began with the old share.
    """

    def __init__(self, split: Split, decoders: Sequence[BalancedKernel], steps: Sequence[Step], depth: int) -> None:
        self.split = split
        self.decoders = decoders
        self._balanced = [i for i, s in enumerate(steps) if s.on_gpu and _is_balanced(s)]
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
        """Return the rows by device, with reasons.

        The CPU's rows are the sum of the reasons' counts: batches in flight are counted while this is read.
        """
        reasons: dict[str, int] = {}
        for decoder in self.decoders:
            for reason, rows in decoder.reasons.items():
                reasons[reason] = reasons.get(reason, 0) + rows
        on_gpu = sum(d.rows_on_gpu for d in self.decoders)
        return Decoding(on_gpu, sum(reasons.values()), reasons, self.split.cpu_share, self.split.why)

    def delivered(self, run: MeasuredRun, meter: Meter, in_flight: int, finished: int) -> None:
        """Record a delivered batch. The last two arguments are the queue's counts at the time of the request."""
        if self.split.fixed:
            return
        if self._skip:
            self._skip -= 1
            return
        self._ready += finished >= max(1, in_flight - 1)
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

    def _total(self, run: MeasuredRun, meter: Meter) -> _Total:
        measured, device = run.device_times()
        decoders = self.decoders
        return _Total(
            meter.rows, meter.batches, meter.last, meter.waited_s, sum(run.step_times()),
            sum(d.rows_on_cpu for d in decoders), sum(d.rows_on_gpu for d in decoders), sum(d.cpu_ns for d in decoders),
            measured, sum(device[i] for i in self._balanced), sum(device),
        )  # fmt: skip

    def _window(self, a: _Total, b: _Total, ready: int) -> Window:
        rows, seconds = b.rows - a.rows, b.at - a.at
        decoded = b.on_cpu - a.on_cpu + b.on_gpu - a.on_gpu
        part = (b.on_gpu - a.on_gpu) / max(1, decoded)  # share of the rows that the GPU decoded
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
