# SPDX-License-Identifier: Apache-2.0
"""Records that a library reads on threads: errors of single records, requests after the end, missing packages."""

from __future__ import annotations

import importlib.util
import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stoker import ArgumentError, DataError, StateError, UnsupportedError, fn
from stoker.contract.storage import RecordLocation
from stoker.readers._library_records import LibraryStorage, RequestThreads
from tests.containers.data import rows


class Numbers(LibraryStorage):
    """Records that are their own number. Those in ``bad`` raise an error; ``gate`` holds all calls."""

    def __init__(self, size: int, bad: Sequence[int] = ()) -> None:
        super().__init__("stoker-test", "all numbers")
        self.size, self.bad = size, set(bad)
        self.calls: list[list[int]] = []
        self.gate = threading.Event()
        self.gate.set()

    def __len__(self) -> int:
        return self.size

    def locate(self, record: int) -> RecordLocation:
        return RecordLocation(f"number {record}")

    def read(self, records: Sequence[int]) -> Sequence[bytes]:
        assert self.gate.wait(20)
        self.calls.append(list(records))
        if self.bad & set(records):
            raise ValueError("a bad number")
        return [str(r).encode() for r in records]


def test_records_are_read_together_and_once() -> None:
    storage = Numbers(1000)
    try:
        wanted = np.random.default_rng(0).permutation(1000)[:200]
        storage.request(wanted, 2)
        assert storage.take([int(r) for r in wanted]) == [str(r).encode() for r in wanted]
        assert sorted(r for call in storage.calls for r in call) == sorted(wanted.tolist())
        assert len(storage.calls) <= 25
        assert all(call == sorted(call) for call in storage.calls)
        storage.request(np.asarray([5, 5, 7]), 2)
        assert storage.take([7, 5, 5]) == [b"7", b"5", b"5"]
    finally:
        storage.close()


def test_a_bad_record_fails_alone() -> None:
    storage = Numbers(40, bad=[3, 30])
    try:
        found = storage.take(range(40))
        for record, value in enumerate(found):
            if record in storage.bad:
                assert isinstance(value, DataError)
                assert f"number {record}" in str(value)
                assert "a bad number" in str(value)
            else:
                assert value == str(record).encode()
        assert isinstance(storage.take([40])[0], DataError)
    finally:
        storage.close()


def test_an_ended_storage_reads_nothing() -> None:
    storage = Numbers(40)
    storage.gate.clear()
    storage.request(np.arange(40), 1)
    taken: list[Any] = []
    taker = threading.Thread(target=lambda: taken.extend(storage.take([1])))
    taker.start()
    storage.cancel()
    taker.join(20)
    assert not taker.is_alive()
    assert isinstance(taken[0], StateError)
    storage.gate.set()
    storage.close()
    storage.close()
    calls = len(storage.calls)
    assert isinstance(storage.take([2])[0], StateError)
    assert len(storage.calls) == calls
    with pytest.raises(ArgumentError, match="give all numbers to one reader"):
        storage.joined([Numbers(1)])


def test_requests_after_the_end_are_cancelled() -> None:
    threads = RequestThreads("stoker-test")
    storage = Numbers(1)
    threads.close()
    asked = storage._begin([0])
    storage.close()
    assert asked[0].result(20) == b"0"
    late = storage._begin([0])
    with pytest.raises(CancelledError):
        late[0].result(20)


READERS = {
    "array_record": ("array-record", lambda f: fn.readers.array_record(str(f / "a"))),
    "lance": ("pylance", lambda f: fn.readers.lance(str(f), columns="a")),
    "litdata": ("litdata", lambda f: fn.readers.litdata(str(f), columns="a")),
    "astropy": ("astropy", lambda f: fn.experimental.readers.fits(files=[str(f / "a")])),
}


@pytest.mark.parametrize("module", READERS)
def test_packages_that_are_missing_are_named(module: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(module) is not None:
        pytest.skip(f"tests the error without {module}, which is installed here")
    (tmp_path / "a").write_bytes(b"x")
    package, read = READERS[module]
    with pytest.raises(UnsupportedError, match=f"expected the package `{module}`.*`pip install {package}`"):
        rows(lambda: read(tmp_path))


def test_arguments_of_library_readers() -> None:
    def fault(text: str, read: Any) -> None:
        with pytest.raises(ArgumentError, match=text):
            rows(read)

    fault("a path or a list of paths as `paths`", lambda: fn.readers.array_record([]))
    fault(r"expected a lance\.LanceDataset, or a folder", lambda: fn.readers.lance(3, columns="a"))
    fault("expected `columns` among 'a', got 'b'", lambda: fn.readers.lance("a", columns="a", label="b"))
    fault("one of `num_outputs` and `columns`", lambda: fn.readers.litdata("a", columns="a", num_outputs=2))
    fault("one of `files` and `file_list`", lambda: fn.experimental.readers.fits(files=["a"], file_list="b"))
    fault("numbers from 1 on", lambda: fn.experimental.readers.fits(files=["a"], hdu_indices=[0]))
    fault("a type for each of 1 outputs", lambda: fn.experimental.readers.fits(files=["a"], dtypes=[]))
