# SPDX-License-Identifier: Apache-2.0
"""The number of threads that compute batches follows the consumer's pace."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from idle_clock import HANG_S

from stoker.frontends.torchvision.gpu import plans
from stoker.frontends.torchvision.loader.pace import _MEASURED, _STEADY, Pace
from stoker.frontends.torchvision.loader.scheduler import BatchScheduler
from stoker.native import _native
from tests.takeover.test_scheduler import a_batch


class Consumer:
    """Consumer with steps of given lengths, on a clock of its own."""

    def __init__(self, most: int) -> None:
        self.now = 100.0
        self.pace = Pace(most, lambda: self.now)

    def take(self, *, step_s: float, work_s: float, waited_s: float = 0.0, batches: int = 1) -> int:
        """Take batches; return the number of threads after them."""
        for _ in range(batches):
            self.now += step_s
            self.pace.request()
            self.now += waited_s
            self.pace.deliver(work_s)
        return self.pace.active


def test_all_threads_work_until_the_pace_is_known() -> None:
    consumer = Consumer(16)
    assert consumer.take(step_s=1.0, work_s=0.1, batches=_MEASURED) == 16
    assert consumer.take(step_s=1.0, work_s=0.1) == 1


@pytest.mark.parametrize(("work_s", "threads"), [(0.1, 1), (1.0, 2), (2.0, 3), (4.0, 6), (11.0, 16), (100.0, 16)])
def test_as_many_threads_as_a_step_requires(work_s: float, threads: int) -> None:
    assert Consumer(16).take(step_s=1.0, work_s=work_s, batches=20) == threads


def test_a_consumer_without_steps_of_its_own_has_all_threads() -> None:
    assert Consumer(8).take(step_s=0.0, work_s=0.1, batches=20) == 8


def test_waiting_raises_the_number_for_a_while() -> None:
    consumer = Consumer(16)
    consumer.take(step_s=1.0, work_s=0.1, batches=20)
    assert consumer.take(step_s=1.0, work_s=0.1, waited_s=0.04) == 1, "short of the bound"
    assert [consumer.take(step_s=1.0, work_s=0.1, waited_s=0.2) for _ in range(5)] == [2, 4, 8, 16, 16]
    assert consumer.take(step_s=1.0, work_s=0.1, batches=_STEADY - 1) == 16
    assert consumer.take(step_s=1.0, work_s=0.1) == 8
    assert consumer.take(step_s=1.0, work_s=0.1, batches=4 * _STEADY) == 1


def test_pauses_do_not_count_as_steps() -> None:
    """A validation or a checkpoint takes long; they do not change the number of threads."""
    consumer = Consumer(16)
    assert consumer.take(step_s=1.0, work_s=4.0, batches=20) == 6
    assert consumer.take(step_s=300.0, work_s=4.0) == 6
    assert consumer.take(step_s=1.0, work_s=4.0, batches=20) == 6


def test_a_pool_runs_as_many_recipes_as_are_active(files: Path) -> None:
    """Idle threads leave the work to the active ones, and begin when the number rises."""
    scheduler = BatchScheduler(4)
    try:
        assert scheduler._pool is not None
        for active in (0, 1, 3, 9):  # out of range: the nearest possible number
            scheduler._pool.set_active(active)
            batch = a_batch(files / "bee" / "3.jpg")
            scheduler.arrive(None, [batch])
            scheduler.finish([batch])
            assert batch._materialized is not None
    finally:
        scheduler.close()


def test_a_batch_reports_the_time_of_its_threads(files: Path) -> None:
    scheduler = BatchScheduler(2)
    try:
        batch = a_batch(files / "bee" / "3.jpg")
        begin = time.monotonic()
        scheduler.arrive(0, [batch])
        scheduler.finish([batch])
        assert 0.0 < scheduler._pace._work_s[-1] <= 2 * (time.monotonic() - begin)
    finally:
        scheduler.close()


def test_a_scheduler_lowers_the_number_for_a_slow_consumer(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[int] = []

    class Pool:
        def __init__(self, threads: int) -> None:
            self._pool = made(threads)

        def __getattr__(self, name: str) -> object:
            return getattr(self._pool, name)

        def set_active(self, threads: int) -> None:
            chosen.append(threads)
            self._pool.set_active(threads)

    made = _native.recipe.WorkerPool
    monkeypatch.setattr(_native.recipe, "WorkerPool", Pool)
    scheduler = BatchScheduler(8)
    clock = Consumer(8)
    scheduler._pace = clock.pace
    try:
        for number in range(3 * _MEASURED):
            batch = a_batch(files / "bee" / "3.jpg")
            scheduler.arrive(number, [batch])
            clock.now += 1000.0  # a step of the consumer
            scheduler.finish([batch])
        assert chosen[-1] == 1 and scheduler._pace.active == 1
    finally:
        scheduler.close()


def test_plans_run_as_many_jobs_as_the_busiest_loader_needs() -> None:
    """Loaders of one device share its plans. A limit ends with its loader."""
    inside, gate = threading.Semaphore(0), threading.Event()
    device = plans.Plans(None, 1, 4)
    first, second = object(), object()

    def hold() -> None:
        with device._turn():
            inside.release()
            gate.wait(HANG_S)

    threads = [threading.Thread(target=hold, daemon=True) for _ in range(plans.JOBS_IN_FLIGHT)]
    try:
        device.set_active(first, 1)
        for thread in threads:
            thread.start()
        assert inside.acquire(timeout=HANG_S)
        assert not inside.acquire(timeout=0.2), "one job at a time"
        device.set_active(second, 2)
        assert inside.acquire(timeout=HANG_S)
        assert not inside.acquire(timeout=0.2)
        device.set_active(second, None)
        device.set_active(first, None)
        assert inside.acquire(timeout=HANG_S), "no limit without loaders"
    finally:
        gate.set()
        for thread in threads:
            thread.join(HANG_S)
        device.close()
    assert not any(thread.is_alive() for thread in threads)
