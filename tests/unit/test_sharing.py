# SPDX-License-Identifier: Apache-2.0
"""The balancing law in a run: measurements of steps and decoders, windows, and the resulting shares.

Rates and times are inputs, not measurements: a simulated run advances its clock and counters per batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest

from stoker.contract.step import CompiledPass, GpuForm, Native, OwnKernel, Step, View
from stoker.executor.meter import Meter
from stoker.executor.split import WINDOW_BATCHES, WINDOW_S, Split, SplitController, Window

US = 1e-6
ROWS, DEPTH, THREADS = 256, 3, 16
BALANCED = Step(Native("any", gpu=GpuForm(balanced=True)), (0,), (1,), 0, on_gpu=True)
OWN = Step(Native("another", gpu=GpuForm(OwnKernel("Another", (CompiledPass("whole"),)))), (1,), (2,), 1, on_gpu=True)
ON_CPU = Step(Native("any", gpu=GpuForm(balanced=True)), (0,), (1,), 0)
VIEW = Step(View(()), (2,), (3,), 2, on_gpu=True)


class Watched(Split):
    """Split that records its inputs."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.windows: list[Window] = []

    def observe(self, window: Window) -> bool:
        self.windows.append(window)
        return super().observe(window)


@dataclass
class Decoder:
    """Counters of a decoder."""

    cpu_share: float = 0.0
    rows_on_gpu: int = 0
    rows_on_cpu: int = 0
    cpu_ns: int = 0
    reasons: dict[str, int] = field(default_factory=dict)


@dataclass
class Simulated:
    """Run with one balanced step. All its times are inputs.

    Attributes:
        gpu: seconds of the GPU per row, by step; the first is the time of the balanced step for rows on the GPU.
        cpu: seconds of a thread for one row of the balanced step.
        other: seconds of a thread per row for everything else.
        consumer: seconds per row of a consumer that never waits.
    """

    gpu: tuple[float, ...]
    cpu: float = 900 * US
    other: float = 60 * US
    consumer: float = 0.0
    decoder: Decoder = field(default_factory=Decoder)
    meter: Meter = field(default_factory=Meter)
    clock: float = 100.0
    busy_s: float = 0.0
    measured: int = 0
    on_gpu_s: list[float] = field(default_factory=list)

    def step_times(self) -> list[int]:
        return [round(self.busy_s * 1e9)]

    def device_times(self) -> tuple[int, list[float]]:
        return self.measured, [1e9 * s for s in self.on_gpu_s or [0.0] * len(self.gpu)]

    def row_s(self, share: float) -> float:
        gpu = (1 - share) * self.gpu[0] + sum(self.gpu[1:])
        return max(self.consumer, gpu, (self.other + share * self.cpu) / THREADS)

    def deliver(self, sharing: SplitController) -> None:
        """Advance by one batch."""
        decoder, share = self.decoder, self.decoder.cpu_share
        on_cpu = round(ROWS * share)
        decoder.rows_on_cpu += on_cpu
        decoder.rows_on_gpu += ROWS - on_cpu
        decoder.cpu_ns += round(on_cpu * self.cpu * 1e9)
        self.busy_s += ROWS * self.other + on_cpu * self.cpu
        if self.meter.batches % 4 == 0:  # The device times only some batches.
            totals = self.on_gpu_s or [0.0] * len(self.gpu)
            elapsed = [(ROWS - on_cpu) * self.gpu[0], *(ROWS * s for s in self.gpu[1:])]
            self.on_gpu_s = [a + b for a, b in zip(totals, elapsed, strict=True)]
            self.measured += ROWS
        row = self.row_s(share)
        requested_at = self.clock + ROWS * self.consumer
        self.clock += ROWS * row
        self.meter.delivered(ROWS, requested_at, self.clock, DEPTH, DEPTH if row <= self.consumer else 1)
        sharing.delivered(self, self.meter, DEPTH, DEPTH if row <= self.consumer else 1)


def run(simulated: Simulated, split: Split, steps: list[Step], batches: int) -> list[float]:
    """Return the share of every batch."""
    sharing = SplitController(split, [simulated.decoder], steps, DEPTH)
    shares = []
    for _ in range(batches):
        shares.append(simulated.decoder.cpu_share)
        simulated.deliver(sharing)
    return shares


def test_only_balanced_steps_count_as_decoding() -> None:
    """6 us of decoding and 50 us of another native kernel count as 6 us."""
    simulated, split = Simulated((6 * US, 50 * US, 1 * US)), Watched(THREADS, None)
    run(simulated, split, [BALANCED, OWN, VIEW], 200)
    assert split.windows
    for window in split.windows:
        assert window.gpu_s == pytest.approx(6 * US)
        assert window.gpu_rest_s == pytest.approx(51 * US)


def test_a_balanced_step_on_the_cpu_takes_no_time_of_the_gpu() -> None:
    simulated, split = Simulated((0.0, 50 * US)), Watched(THREADS, None)
    run(simulated, split, [ON_CPU, OWN], 200)
    assert {(window.gpu_s, round(window.gpu_rest_s / US)) for window in split.windows} == {(0.0, 50)}


def test_a_bound_on_the_gpus_time_includes_work_that_stays_on_the_gpu() -> None:
    """Another kernel takes 2 us per row of the GPU's half. Decoding may take only the rest."""
    simulated = Simulated((30 * US, 2 * US), cpu=200 * US, consumer=40 * US)
    split = Watched(THREADS, None, utilization=0.5)
    shares = run(simulated, split, [BALANCED, OWN], 6000)
    used = ((1 - shares[-1]) * 30 * US + 2 * US) / simulated.row_s(shares[-1])
    assert used <= 0.52
    assert shares[-1] >= 0.38, "20 us per row, less 2, are 60 % of the rows"
    assert shares[-1] <= 0.75


def test_shares_come_close_to_the_best() -> None:
    """Rows on the CPU gain little when another kernel takes most of the GPU's time. The law finds the best share."""
    simulated = Simulated((10 * US, 20 * US), cpu=300 * US)
    best = min(simulated.row_s(share / 500) for share in range(501))
    shares = run(simulated, Split(THREADS, None), [BALANCED, OWN], 20000)
    late = shares[len(shares) // 2 :]
    assert sum(map(simulated.row_s, late)) / len(late) <= 1.08 * best
    assert simulated.row_s(0.0) > 1.2 * best, "there was something to find"


def test_a_window_is_long_enough_and_none_spans_a_change() -> None:
    simulated, split = Simulated((6 * US, 50 * US)), Watched(THREADS, None)
    sharing = SplitController(split, [simulated.decoder], [BALANCED, OWN], DEPTH)
    ends = []
    for batch in range(400):
        before, share = len(split.windows), simulated.decoder.cpu_share
        simulated.deliver(sharing)
        if len(split.windows) > before:
            window = split.windows[-1]
            ends.append((batch, share, simulated.decoder.cpu_share != share))
            assert window.rows >= WINDOW_BATCHES * ROWS
            assert window.seconds >= WINDOW_S
            if share:
                assert window.cpu_s == pytest.approx(simulated.cpu)
    for (first, _, changed), (second, _, _) in pairwise(ends):
        if changed:  # Batches that started with the previous share do not count.
            assert second - first >= WINDOW_BATCHES + DEPTH + 2


def test_a_fixed_share_applies_immediately_and_never_changes() -> None:
    simulated, split = Simulated((6 * US, 50 * US)), Watched(THREADS, 0.75)
    assert set(run(simulated, split, [BALANCED, OWN], 100)) == {0.25}
    assert split.windows == []


def test_the_report_sums_up_all_decoders() -> None:
    first, second = Decoder(0.0, 70, 30, 0, {"damaged": 10, "PNG": 20}), Decoder(0.0, 5, 15, 0, {"PNG": 15})
    report = SplitController(Split(THREADS, 0.5), [first, second], [BALANCED, OWN], DEPTH).report()
    assert (report.rows_on_gpu, report.rows_on_cpu, report.cpu_share) == (75, 45, 0.5)
    assert report.reasons == {"damaged": 10, "PNG": 35}
    assert (first.cpu_share, second.cpu_share) == (0.5, 0.5)


def test_the_report_is_consistent_while_rows_are_counted() -> None:
    """Another thread counts a row after the report has read the reasons."""
    decoder = Decoder(0.0, 70, 31, 0, {"damaged": 10, "PNG": 20})
    report = SplitController(Split(THREADS, 0.5), [decoder], [BALANCED, OWN], DEPTH).report()
    assert report.rows_on_cpu == sum(report.reasons.values()) == 30
