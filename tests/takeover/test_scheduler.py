# SPDX-License-Identifier: Apache-2.0
"""The batch scheduler: waiting batches, batches in flight, and their memory."""

from __future__ import annotations

import gc
import os
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from idle_clock import HANG_S, at_most

import stoker.torchvision
from stoker.frontends.torchvision.ir.recipe import Node
from stoker.frontends.torchvision.loader import scheduler
from stoker.frontends.torchvision.loader.scheduler import BatchScheduler
from stoker.frontends.torchvision.materialize.materialization import shrink
from stoker.frontends.torchvision.tensors.tensor import LazyTensor, image_tensor, stack_lazy
from stoker.frontends.torchvision.transport import segment
from stoker.frontends.torchvision.transport.source import Source
from stoker.native import _native
from tests.takeover.scripts import classification, run


@pytest.fixture
def as_worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(segment, "_in_worker", True)
    yield
    segment._thread.earlier.clear()


@pytest.fixture
def batch_scheduler() -> Iterator[BatchScheduler]:
    created = BatchScheduler(2)
    yield created
    created.close()


def a_batch(file: Path) -> LazyTensor:
    source = Source(np.frombuffer(file.read_bytes(), np.uint8))
    info = _native.jpeg.jpeg_info(file.read_bytes())
    joined = stack_lazy([image_tensor(Node.decode(source, (info["width"], info["height"]), 3))] * 3)
    assert joined is not None
    return joined


def test_a_file_in_shared_memory_is_not_sent_in_the_message(files: Path, as_worker: None) -> None:
    """A worker shares the bytes of a file that it keeps, whenever the file was opened."""
    batch = a_batch(files / "bee" / "3.jpg")
    source = batch._rows[0].node.source
    held = source.data.tobytes()
    segment.begin_batch()
    shrink([batch])
    segment.end_batch()
    assert source._data is None and source._location is not None and source._location[2] == len(held)
    assert source.data.tobytes() == held
    segment._thread.earlier[-1].retire()
    assert source._location is None and source.data.tobytes() == held, "the next batch still has the bytes"


def soon(condition: Callable[[], bool]) -> bool:
    end = time.monotonic() + HANG_S
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_batches_without_lazy_pixels_block_no_other(files: Path, batch_scheduler: BatchScheduler) -> None:
    """The consumer never requests batches that a collation has materialized."""
    batches = [a_batch(files / "bee" / "3.jpg") for _ in range(3)]
    batch_scheduler.arrive(0, [batches[0]])
    batch_scheduler.arrive(1, [])
    batch_scheduler.arrive(2, [batches[1]])
    assert soon(lambda: [b.number for b in batch_scheduler._started] == [0, 2])
    batch_scheduler.finish([batches[0]])
    batch_scheduler.finish([batches[1]])
    batch_scheduler.arrive(3, [])
    batch_scheduler.arrive(4, [batches[2]])
    batch_scheduler.finish([batches[2]])  # the consumer may be faster than the scheduler's thread
    assert soon(lambda: not batch_scheduler._waiting)


def test_memory_that_the_consumer_releases_is_reused(files: Path, batch_scheduler: BatchScheduler) -> None:
    batches = [a_batch(files / "bee" / "3.jpg") for _ in range(6)]
    for number, batch in enumerate(batches):
        batch_scheduler.arrive(number, [batch])
    assert soon(lambda: len(batch_scheduler._started) == 2)
    addresses = set()
    for number in range(6):
        batch_scheduler.finish([batches[number]])
        real = batches[number]._materialized
        assert real is not None
        addresses.add(real.data_ptr())
        batches[number]._materialized = None
        del real
        gc.collect()
        left = min(2, 5 - number)
        assert soon(lambda left=left: len(batch_scheduler._started) == left), "started when there was room again"  # type: ignore[misc]
    assert len(addresses) == 2, "the consumer's batch and the one in flight"


def test_a_consumer_may_keep_all_batches(files: Path, batch_scheduler: BatchScheduler) -> None:
    batches = [a_batch(files / "bee" / "3.jpg") for _ in range(8)]
    for number, batch in enumerate(batches):
        batch_scheduler.arrive(number, [batch])
    for batch in batches:
        batch_scheduler.finish([batch])
    addresses = {b._materialized.data_ptr() for b in batches if b._materialized is not None}
    assert len(addresses) == 8


def test_the_next_batch_starts_first_in_any_order_of_arrival(files: Path, batch_scheduler: BatchScheduler) -> None:
    late, early = a_batch(files / "bee" / "3.jpg"), a_batch(files / "bee" / "3.jpg")
    batch_scheduler.arrive(1, [late])
    time.sleep(0.05)
    assert not batch_scheduler._started, "not its turn"
    batch_scheduler.arrive(0, [early])
    assert soon(lambda: [b.number for b in batch_scheduler._started] == [0, 1])
    batch_scheduler.finish([early])
    batch_scheduler.finish([late])


def test_plain_batches_need_no_thread(files: Path, batch_scheduler: BatchScheduler) -> None:
    """Plain batches pass in any order of arrival; a batch with pixels waits for those before it."""
    for number in (2, 1, 4, 0):
        batch_scheduler.arrive(number, [])
    assert [batch.number for batch in batch_scheduler._waiting] == [4]
    assert batch_scheduler._next == 3
    assert batch_scheduler._thread is None
    lazy = a_batch(files / "bee" / "3.jpg")
    batch_scheduler.arrive(5, [lazy])
    assert not batch_scheduler._started
    batch_scheduler.arrive(3, [])
    batch_scheduler.finish([lazy])  # the consumer may be faster than the thread
    assert lazy._materialized is not None
    assert soon(lambda: not batch_scheduler._waiting)


def test_batches_of_an_earlier_epoch_are_dropped(files: Path, batch_scheduler: BatchScheduler) -> None:
    old, new = a_batch(files / "bee" / "3.jpg"), a_batch(files / "bee" / "3.jpg")
    batch_scheduler.arrive(0, [old])
    assert soon(lambda: len(batch_scheduler._started) == 1)
    batch_scheduler.forget()
    batch_scheduler.arrive(0, [new])
    batch_scheduler.finish([new])
    assert not batch_scheduler._started and not batch_scheduler._waiting and old._materialized is None


@pytest.mark.parametrize("workers", [1, 2])
def test_epochs_that_are_left_early_by_workers_that_stay(files: Path, workers: int) -> None:
    def script() -> list[Any]:
        loader = classification(str(files), workers, persistent_workers=True)
        out = []
        for _ in range(3):
            for at, batch in enumerate(loader):
                out.append(batch)
                if at == 1:
                    break
        return out

    torch.manual_seed(0)
    untouched = script()
    with stoker.torchvision.enabled():
        torch.manual_seed(0)
        ours = script()
    for a, b in zip(untouched, ours, strict=True):
        assert torch.equal(a[0], b[0]) and torch.equal(a[1], b[1])


def test_the_relay_takes_no_more_batches_than_there_is_room_for(files: Path) -> None:
    class Endless:
        taken = 0

        def get(self, timeout: float) -> Any:
            self.taken += 1
            return self.taken - 1, a_batch(files / "bee" / "3.jpg")

    source, batch_scheduler = Endless(), BatchScheduler(2)
    relay = scheduler.Relay(source, batch_scheduler, lambda data, created: ([data], [], []))
    try:
        assert soon(lambda: source.taken >= 2)
        time.sleep(0.6)
        assert source.taken <= 6
        for number in range(20):
            got, batch = relay.get(timeout=60)
            assert got == number
            batch_scheduler.finish([batch])
    finally:
        relay.close()
        batch_scheduler.close()


def test_a_block_reports_its_release() -> None:
    blocks, released_by = _native.recipe.block_pool(1), []
    array = blocks.take(100, lambda: released_by.append(threading.get_ident()))
    part = array[3:5]
    del array
    assert not released_by
    del part
    assert released_by == [threading.get_ident()]


def test_a_segment_reuses_the_room_of_released_bytes(as_worker: None) -> None:
    segment.begin_batch()
    first = Source.from_bytes(b"first")
    Source.from_bytes(b"without a reference")
    second = Source.from_bytes(b"second")
    assert first._location is not None and second._location is not None
    assert second._location[1] == 5
    assert first.data.tobytes() == b"first" and second.data.tobytes() == b"second"
    segment.end_batch()
    assert second.data.tobytes() == b"second"


def test_a_cached_image_does_not_keep_its_batch(as_worker: None) -> None:
    segment.begin_batch()
    cached = Source.from_bytes(b"cached")
    segment.end_batch()
    for _ in range(3):
        segment.begin_batch()
        segment.end_batch()
    assert cached._location is None and cached.data.tobytes() == b"cached"
    assert pickle.loads(pickle.dumps(cached)).data.tobytes() == b"cached"


def test_without_a_descriptor_bytes_are_sent_in_the_message(monkeypatch: pytest.MonkeyPatch, files: Path) -> None:
    def refused(*args: Any) -> int:
        raise OSError(24, "Too many open files")

    untouched = run(classification(str(files), 2))
    monkeypatch.setattr(segment.os, "memfd_create", refused)
    with stoker.torchvision.enabled():
        ours = run(classification(str(files), 2))
    for a, b in zip(untouched, ours, strict=True):
        assert torch.equal(a[0], b[0])


def test_a_relay_ends_during_an_incomplete_message(
    batch_scheduler: BatchScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that is killed while it writes leaves half a message, and its reader waits for the rest."""
    monkeypatch.setattr(scheduler, "_CLOSE_S", 0.1)
    started, rest = threading.Event(), threading.Event()

    class Cut:
        def get(self, timeout: float) -> Any:
            started.set()
            rest.wait(HANG_S)
            raise EOFError

    relay = scheduler.Relay(Cut(), batch_scheduler, lambda data, created: ([data], [], []))
    assert started.wait(HANG_S)
    with at_most(5):
        relay.close()
    rest.set()
    relay._thread.join(HANG_S)
    assert not relay._thread.is_alive()
    for end in relay._stop_pipe:
        os.close(end)
