# SPDX-License-Identifier: Apache-2.0
"""Asynchronous stores: prefetched requests, closing, and failures."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import Any

import pytest
from idle_clock import HANG_S

from stoker import DataError, StateError, fn, pipeline_def
from stoker.executor.later_rows import LaterRows
from stoker.readers import ByteRange
from tests.run.containers import COUNT, as_record, epoch, of_records, payload, rows_of
from tests.run.own_readers import FolderStore, RecordReader

pytestmark = pytest.mark.usefixtures("registered_readers")


class GatedStore(FolderStore):
    """Store whose reads wait until the test opens the gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()

    def _read(self, r: ByteRange) -> bytes:
        self.gate.wait(2 * HANG_S)
        return super()._read(r)


class CachingStore(FolderStore):
    """Store that notes which bytes rows will request later."""

    looks_ahead = True

    def __init__(self) -> None:
        super().__init__()
        self.expected: set[ByteRange] = set()

    def look_ahead(self, ranges: list[ByteRange]) -> int:
        self.expected |= set(ranges)
        return sum(r.length for r in ranges)


def test_a_store_gets_the_requests_of_all_prefetched_batches(records: list[str]) -> None:
    store = GatedStore()
    with of_records(paths=records, where="store", store=store, prefetch_queue_depth=3) as pipe:
        got: list[Any] = []
        thread = threading.Thread(target=lambda: got.append(rows_of(pipe.run())))
        thread.start()
        deadline = time.monotonic() + HANG_S
        first = sum(bool(payload(i)[0]) for i in range(12))  # a store may leave out requests for empty records
        while len(store.requested) < first and time.monotonic() < deadline:
            time.sleep(0.01)
        assert len(store.requested) >= first, "three batches"
        assert not got
        store.gate.set()
        thread.join(HANG_S)
        assert len(got) == 1
        requested = len(store.requested)
        list(epoch(pipe))
    wanted = sum(bool(payload(i)[0]) for i in range(COUNT))
    assert wanted <= len(store.requested) <= 2 * wanted and requested < len(store.requested)
    assert store.closed >= 1


def test_a_store_gets_no_request_twice_and_none_for_unused_outputs(records: list[str]) -> None:
    @pipeline_def(batch_size=4, num_threads=2, seed=3)
    def labels_alone(store: Any) -> Any:
        return fn.own.records(paths=records, where="store", store=store)[1]

    store = FolderStore()
    with labels_alone(store) as pipe:
        pipe.run()
        assert not store.requested
    store = FolderStore()
    with of_records(paths=records, where="store", store=store, exec_async=False) as pipe:
        epoch(pipe)
        assert len(store.requested) == len(set(store.requested)) == sum(bool(payload(i)[0]) for i in range(COUNT))


@pytest.mark.parametrize("caches", [False, True])
def test_the_order_of_later_rows_is_computed_for_a_store_with_a_cache_alone(
    records: list[str], monkeypatch: pytest.MonkeyPatch, caches: bool
) -> None:
    computed: list[int] = []
    real = LaterRows.next
    monkeypatch.setattr(LaterRows, "next", lambda self: computed.append(self.given) or real(self))
    store = CachingStore() if caches else FolderStore()
    with of_records(paths=records, where="store", store=store) as pipe:
        assert len(epoch(pipe)) == COUNT
    assert bool(computed) == caches
    assert not caches or store.expected >= {r for r in store.requested if r.length}


def test_the_first_records_of_the_next_epoch_are_requested_before_it_begins(records: list[str]) -> None:
    store = FolderStore()
    whole = sum(bool(payload(i)[0]) for i in range(COUNT))
    early = sum(bool(payload(i)[0]) for i in range(2 * 4))
    with of_records(paths=records, where="store", store=store, prefetch_queue_depth=2) as pipe:
        first = [as_record(row) for row in epoch(pipe)]
        assert len(store.requested) == whole + early
        assert store.requested[whole:] == store.requested[:early]
        pipe.start_epoch(1)
        assert [as_record(row) for row in epoch(pipe)] == first
        assert store.requested[whole : 2 * whole] == store.requested[:whole], "no record twice"
        assert len(store.requested) == 2 * whole + early
        pipe.start_epoch(5)  # another one than the next: what was requested for that one is discarded
        assert [as_record(row) for row in epoch(pipe)] == first
        assert len(store.requested) == 3 * whole + 2 * early
        pipe.start_epoch(6)
        pipe.run()
        pipe.start_epoch(7)  # batches of the epoch are still in flight
        assert [as_record(row) for row in epoch(pipe)] == first


def test_closing_ends_the_wait_for_a_store(records: list[str]) -> None:
    store = GatedStore()
    pipe = of_records(paths=records, where="store", store=store)
    failed: list[BaseException] = []

    def take() -> None:
        try:
            pipe.run()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=take)
    thread.start()
    deadline = time.monotonic() + HANG_S
    while not store.requested and time.monotonic() < deadline:
        time.sleep(0.01)
    closing = threading.Thread(target=pipe.close)
    closing.start()
    thread.join(HANG_S)
    assert not thread.is_alive() and isinstance(failed[0], (StateError, DataError)), failed
    store.gate.set()
    closing.join(HANG_S)
    assert not closing.is_alive() and store.closed >= 1


def test_errors_of_a_store_fail_their_row_or_the_batch_if_the_system_fails(records: list[str]) -> None:
    storage = RecordReader.dataset({"paths": records, "where": "file"}).columns[0].storage
    assert storage is not None
    location = storage.locate(6)

    store = FolderStore()
    store.failing[location.path, location.offset] = ConnectionError("reset by peer")
    with of_records(paths=records, where="store", store=store, on_error="skip") as pipe:
        assert len(epoch(pipe)) == COUNT - 1
        (bad,) = pipe.errors
        expected = f"cannot read '{location.path}' at byte {location.offset}: ConnectionError: reset by peer"
        assert (bad.index, bad.offset, bad.reason) == (6, location.offset, expected)

    store = FolderStore()
    store.failing[location.path, location.offset] = OSError(24, "Too many open files")
    with of_records(paths=records, where="store", store=store, on_error="skip") as pipe:
        pipe.run()
        with pytest.raises(DataError, match=r"Too many open files — sample 6"):
            pipe.run()
        assert len(epoch(pipe)) == COUNT - 8 and not pipe.errors

    store = FolderStore()
    store.cut.add((location.path, location.offset))
    with of_records(paths=records, where="store", store=store, on_error="skip") as pipe:
        assert len(epoch(pipe)) == COUNT - 1
        assert (
            f"at byte {location.offset} of '{location.path}', got {(location.length or 0) - 1}" in pipe.errors[0].reason
        )


def test_available_bytes_need_no_future(records: list[str]) -> None:
    class Cached:
        def fetch(self, ranges: Any) -> list[bytes | Future[bytes]]:
            found: list[bytes | Future[bytes]] = []
            for r in ranges:
                with open(r.path, "rb") as file:
                    file.seek(r.offset)
                    found.append(file.read(r.length))
            return found

        def close(self) -> None:
            pass

    with of_records(paths=records, where="store", store=Cached()) as pipe:
        assert [as_record(row) for row in epoch(pipe)] == list(range(COUNT))


def test_the_report_names_the_network(records: list[str]) -> None:
    class Slow(FolderStore):
        def _read(self, r: ByteRange) -> bytes:
            time.sleep(0.02)
            return super()._read(r)

    with of_records(paths=records, where="store", store=Slow(), batch_size=4) as pipe:
        epoch(pipe)
        report = pipe.report()
        waiting = next(s for s in report.stages if s.where == "network")
        assert waiting.ms_per_row > 0.5 and report.limited_by == "network"
        assert report.limit.startswith(f"the network, which rows wait for in `{waiting.name}`")
        assert report.to_dict()["read_ahead"] is None
