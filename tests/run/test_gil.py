# SPDX-License-Identifier: Apache-2.0
"""A pipeline without Python nodes enters Python once per batch, in its consumer, whatever other threads do there."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from idle_clock import HANG_S

from stoker.native import _native
from stoker.torch import Loader
from tests.run.pipelines import baseline_of, decoding, training

BATCHES = 10
TRIES = 20


@pytest.fixture(autouse=True)
def _no_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer polls while a batch takes long, as on a busy machine. These polls are not what the tests count."""
    monkeypatch.setattr("stoker.executor.run._POLL_S", HANG_S)


@pytest.fixture(scope="module")
def files(jpegs: Path) -> list[str]:
    return baseline_of(jpegs)


def fewest_per_window(step: object, count: int = BATCHES) -> int:
    """Return the GIL acquisitions in the best of some windows: a busy machine makes a consumer poll in some of them."""
    assert callable(step)
    found = []
    for _ in range(TRIES):
        before = _native.gil_acquired()
        for _ in range(count):
            step()
        found.append(_native.gil_acquired() - before)
        if found[-1] <= count:
            break
    return min(found)


@pytest.mark.parametrize("define", [training, decoding])
def test_once_per_batch(files: list[str], define: object) -> None:
    assert callable(define)
    with define(files, batch_size=8, num_threads=3) as pipe:
        pipe.run()
        assert fewest_per_window(pipe.run) <= BATCHES


def test_once_per_batch_for_the_loader(files: list[str]) -> None:
    loader = Loader(training(files, batch_size=2))
    batches = iter([x for _ in range(3) for x in loader])
    next(batches)
    loop = iter(loader)
    next(loop)
    assert fewest_per_window(lambda: next(loop), len(loader) - 2) <= len(loader) - 2 or fewest_of_epochs(loader)
    loader.close()


def fewest_of_epochs(loader: Loader) -> bool:
    found = []
    for _ in range(TRIES):
        before = _native.gil_acquired()
        count = sum(1 for _ in loader)
        found.append(_native.gil_acquired() - before - count)
    return min(found) <= 0


def test_never_while_the_consumer_is_busy(files: list[str]) -> None:
    with training(files, batch_size=8, prefetch_queue_depth=4) as pipe:
        pipe.run()
        before = _native.gil_acquired()
        time.sleep(0.5)
        assert _native.gil_acquired() == before, "batches are prefetched without Python"


@pytest.fixture
def spinning() -> Iterator[None]:
    """Run a thread that keeps the GIL as long as possible: 50 ms for each waiting thread."""
    stop = False
    interval = sys.getswitchinterval()

    def spin() -> None:
        while not stop:
            pass

    sys.setswitchinterval(0.05)
    spinner = threading.Thread(target=spin)
    spinner.start()
    yield
    stop = True
    sys.setswitchinterval(interval)
    spinner.join(HANG_S)


def test_a_spinning_thread_costs_its_own_time_only(files: list[str], request: pytest.FixtureRequest) -> None:
    with training(files, batch_size=16) as pipe:
        pipe.run()
        request.getfixturevalue("spinning")
        # Each acquisition waits for the spinner: once per batch, not once per row (which would take 8 s here).
        assert fewest_per_window(pipe.run) <= BATCHES


def test_threads_are_joined_without_the_lock_when_their_owner_is_dropped() -> None:
    # What a thread waits for may need Python, such as a file system that this process serves.
    plan = _native.Plan()
    plan.finish(0, 0)
    owners = [lambda: _native.ReadAhead(1, 1), lambda: _native.Engine(plan, 1), lambda: _native.recipe.WorkerPool(1)]
    for make in owners:
        owner, before = make(), _native.gil_acquired()
        del owner
        assert _native.gil_acquired() == before + 1
