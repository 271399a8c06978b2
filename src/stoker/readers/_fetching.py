# SPDX-License-Identifier: Apache-2.0
"""Storage over an asynchronous store: records are requested when a batch's rows are known, and awaited later."""

from __future__ import annotations

import os
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence, Set
from concurrent.futures import Future, TimeoutError
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.argument import arg
from ..contract.errors import ArgumentError, DataError, StateError, is_system_failure
from ..contract.lowering import Lowering
from ..contract.operator import Operator, RowContext, Spec
from ..contract.step import ALIASES, Value
from ..contract.storage import Bools, ByteRange, RecordForm, RecordLocation, Storage, Store
from ..contract.types import DType
from ..native import _native
from ..remote.block_cache import RemoteObject
from ._frames import without_frame
from ._storages import Numbers, checked_ranges

_POLL_S = 0.1  # longest delay until a closed pipeline is noticed
_CLOSED = "the pipeline is closed"

Asked = dict[int, "Future[bytes]"]
Begun = Mapping[int, "Future[bytes] | bytes"]  # some records have arrived already


class RequestedStorage(Storage):
    """Records that are requested as soon as the rows of a batch are known, and awaited when the rows run.

    A batch is known as early as batches are prefetched (``prefetch_queue_depth``). A Python step waits for its records.
    Records of unexpected rows, such as substitutes of bad ones, are requested when the row runs.
    """

    asynchronous = True

    def __init__(self) -> None:
        self.waited_ns = 0  # in which rows waited for their bytes
        self._ahead: deque[Begun] = deque()
        self._lock = threading.Lock()
        self._cancelled = False

    @abstractmethod
    def _begin(self, records: Sequence[int]) -> Begun:
        """Begin to read records, each of which exists and occurs once. Errors belong into the futures."""

    def _begin_ahead(self, records: Sequence[int], batches: int) -> Begun:
        """Begin to read the records of a batch, as :meth:`_begin` does; at most ``batches`` batches are pending."""
        return self._begin(records)

    def _waited(self, nanoseconds: int) -> None:
        """Note that rows have waited for their bytes."""
        self.waited_ns += nanoseconds

    @abstractmethod
    def _checked(self, record: int, content: bytes) -> bytes | BaseException:
        """Return the value of a record whose bytes have arrived, or the error of its row."""

    def lower(self, c: Lowering, reader: int, dtype: DType, item: tuple[int, ...], layout: str) -> Value:
        number = c.native("index", [], [(DType.INT64, (), "")], attrs=(reader,))[0]
        fetched: Value = c.apply("_fetch", number, storage=self, spec=Spec(dtype, (None, *item), layout))
        return fetched

    def content(self, record: int) -> bytes:
        found = self.take([record])[0]
        if isinstance(found, BaseException):
            raise OSError(str(found)) from found
        return found

    def request(self, records: npt.NDArray[np.int64], batches: int) -> None:
        wanted = [int(r) for r in records if 0 <= r < len(self)]
        with self._lock:
            if self._cancelled:
                return
        asked = self._begin_ahead(list(dict.fromkeys(wanted)), batches)
        expired: list[Begun] = []
        with self._lock:
            self._ahead.append(asked)
            while len(self._ahead) > batches:
                expired.append(self._ahead.popleft())
        _drop(expired)

    def take(self, records: Sequence[int]) -> list[bytes | BaseException]:
        """Wait for records. Return for each its bytes, or the error that its row fails with.

        Args:
            records: numbers of the records.
        """
        wanted = set(records)
        asked: dict[int, Future[bytes] | bytes] = {}
        with self._lock:
            for batch in self._ahead:
                # The futures stay until the batch expires: another column may need the same records.
                asked |= {r: batch[r] for r in wanted & batch.keys() - asked.keys()}
        asked |= self._begin([r for r in wanted if r not in asked and 0 <= r < len(self)])
        begin = time.perf_counter_ns()
        found = {r: self._result(r, asked.get(r)) for r in wanted}
        self._waited(time.perf_counter_ns() - begin)
        return [found[r] for r in records]

    def _result(self, record: int, future: Future[bytes] | bytes | None) -> bytes | BaseException:
        if future is None:
            return DataError(f"expected a sample below {len(self)} from the sampler, got {record}")
        if not isinstance(future, Future):
            return self._checked(record, future)
        try:
            content = self._wait(future)
        except (StateError, DataError) as error:
            return error
        except Exception as error:  # noqa: BLE001 - a store may raise anything; its row carries it
            if is_system_failure(error):
                return error
            place = self.locate(record)
            bad = DataError(f"cannot read {place.path!r} at byte {place.offset}: {type(error).__name__}: {error}")
            bad.__cause__ = error
            return bad
        return self._checked(record, content)

    def _wait(self, future: Future[bytes]) -> bytes:
        while True:
            if self._cancelled:
                raise StateError(_CLOSED)
            try:
                return future.result(_POLL_S)
            except TimeoutError:
                if future.done():  # an error of the store itself
                    raise

    def drop(self) -> None:
        """Discard prefetched records."""
        with self._lock:
            dropped = list(self._ahead)
            self._ahead.clear()
        _drop(dropped)

    def cancel(self) -> None:
        self._cancelled = True
        self.drop()


class AsyncStorage(RequestedStorage):
    """Byte ranges in an asynchronous store.

    If the store keeps blocks of its objects on disk (`remote/store.py`), a native step reads records out of them.
    Python reads only rows whose blocks have not arrived, and records that need an answer to a damaged frame.

    Args:
        store: the client; closed with the pipeline.
        paths: names of the store's objects.
        file: number of the path, per record.
        offset: first byte, per record.
        length: number of bytes, per record.
        absent: mask of samples that lack the record; by default all have it.
        form: form in which the records are stored.

    Raises:
        ArgumentError: the numbers do not fit together.
    """

    def __init__(
        self, store: Store, paths: Sequence[str | os.PathLike[str]], file: Numbers, offset: Numbers, length: Numbers,
        absent: npt.ArrayLike | None = None, *, form: RecordForm = RecordForm.STORED,
    ) -> None:  # fmt: skip
        super().__init__()
        self._store = store
        self._paths = [os.fspath(p) for p in paths]
        self._form = form
        self._kept: _native.KeptBlocks | None = None  # made when the reader is lowered
        self._near: deque[Set[tuple[RemoteObject, int]]] = deque()  # blocks of the pending batches
        self._twin = self._fill  # one object, so that equal steps of several columns are merged
        self._ranges = checked_ranges(file, offset, length, absent, form)
        present = self._ranges[0][self._ranges[3] != RecordForm.ABSENT]
        if present.size and int(present.max()) >= len(self._paths):
            raise ArgumentError(f"expected numbers of {len(self._paths)} paths as `file`, got {int(present.max())}")

    @property
    def network_wait_ns(self) -> int:
        return self.waited_ns

    def lower(self, c: Lowering, reader: int, dtype: DType, item: tuple[int, ...], layout: str) -> Value:
        kept = self._kept_blocks()
        count = None if kept is None else self._count(c, kept, reader, dtype.size * int(np.prod(item, dtype=np.int64)))
        if count is None:
            return super().lower(c, reader, dtype, item, layout)
        (number,) = c.native("index", [], [(DType.INT64, (), "")], attrs=(reader,))
        shape = (c.element(count), *item)
        (found,) = c.native("read_kept", [number], [(dtype, shape, layout)], attrs=(kept, reader), twin=self._twin)
        if self._form != RecordForm.RECORDIO:
            return found
        record = c.opaque(dtype, 1, layout)
        c.emit("counted_bytes", [found, found], [record], memory=ALIASES)
        return record

    def _count(self, c: Lowering, kept: _native.KeptBlocks, reader: int, size: int) -> Value | None:
        """Return the number of items of ``size`` bytes per record; None if a record may have part of an item."""
        lengths = kept.lengths()
        if (lengths % size).any() or (self._form == RecordForm.RECORDIO and size > 1):
            return None
        return c.native("lookup", [], [(DType.INT64, (), "")], attrs=(lengths // size, len(lengths), reader))[0]

    def _kept_blocks(self) -> _native.KeptBlocks | None:
        """Return the native table of the records in the store's blocks; None if Python reads all records."""
        if self._kept is None:
            self._kept = self._make_kept()
        return self._kept

    def _make_kept(self) -> _native.KeptBlocks | None:
        make = getattr(self._store, "kept_blocks", None)
        found: _native.KeptBlocks | None = None if make is None else make(self._paths, self._ranges)
        return found

    def _fill(self, inputs: Sequence[Any], params: Sequence[float], outputs: Sequence[Any]) -> None:
        """Write a record that the blocks do not have (yet): the twin of the native step."""
        found = self.take([int(inputs[0])])[0]
        if isinstance(found, BaseException):
            raise found
        if self._form == RecordForm.RECORDIO:  # its length is in its frame alone
            found = len(found).to_bytes(8, "little") + found
        outputs[0].reshape(-1).view(np.uint8)[: len(found)] = np.frombuffer(found, np.uint8)

    def __len__(self) -> int:
        return len(self._ranges[0])

    def locate(self, record: int) -> RecordLocation:
        file, offset, length, codec = (int(column[record]) for column in self._ranges)
        return RecordLocation() if codec == RecordForm.ABSENT else RecordLocation(self._paths[file], offset, length)

    def absent(self) -> Bools | None:
        gone: Bools = self._ranges[3] == RecordForm.ABSENT
        return gone if gone.any() else None

    def joined(self, others: Sequence[AsyncStorage]) -> AsyncStorage:
        parts = (self, *others)
        if any((o._store, o._form) != (self._store, self._form) for o in others):
            raise ArgumentError("expected parts that read from one store, got several")
        starts = np.cumsum([0, *(len(p._paths) for p in parts)])
        files = np.concatenate([p._ranges[0] + starts[i] for i, p in enumerate(parts)])
        offset, length, codec = (np.concatenate([p._ranges[k] for p in parts]) for k in (1, 2, 3))
        paths = [path for p in parts for path in p._paths]
        return AsyncStorage(self._store, paths, files, offset, length, codec == RecordForm.ABSENT, form=self._form)

    def chosen(self, records: Sequence[int]) -> AsyncStorage:
        """Return the storage of some of the records, in another order.

        Args:
            records: numbers of the records.
        """
        file, offset, length, codec = (column[list(records)] for column in self._ranges)
        absent = codec == RecordForm.ABSENT
        return AsyncStorage(self._store, self._paths, file, offset, length, absent, form=self._form)

    @property
    def looks_ahead(self) -> bool:
        return bool(getattr(self._store, "looks_ahead", False))

    def look_ahead(self, records: npt.NDArray[np.int64]) -> int:
        begin = getattr(self._store, "look_ahead", None)
        if begin is None or self._cancelled:
            return 0
        if self._kept is not None:
            known: int = self._store.look_ahead_blocks(  # type: ignore[attr-defined]
                self._blocks_of(records[(records >= 0) & (records < len(self))])
            )
            return known
        places = [self.locate(int(r)) for r in records if 0 <= r < len(self)]
        found: int = begin([ByteRange(p.path, p.offset, p.length) for p in places if p.length])
        return found

    def forget_look_ahead(self) -> None:
        forget = getattr(self._store, "forget_look_ahead", None)
        if forget is not None:
            forget()

    def _waited(self, nanoseconds: int) -> None:
        super()._waited(nanoseconds)
        if self._kept is not None:
            self._store.note_wait(nanoseconds)  # type: ignore[attr-defined]

    def _begin_ahead(self, records: Sequence[int], batches: int) -> Begun:
        if self._kept is None:
            return self._begin(records)
        # Rows read the blocks themselves. Those that run before their blocks have arrived ask for them again.
        store: Any = self._store
        blocks = self._blocks_of(np.asarray(records, np.int64))
        self._near.append(blocks.keys())
        while len(self._near) > batches:
            store.release_blocks(self._near.popleft() - set().union(*self._near))
        store.load_blocks(blocks)
        return {}

    def _blocks_of(self, records: npt.NDArray[np.int64]) -> dict[tuple[RemoteObject, int], None]:
        """Return object and number of the blocks that records are in, each once, in the order of the records."""
        file, offset, length, codec = (column[records].astype(np.int64) for column in self._ranges)
        present = codec != RecordForm.ABSENT
        file, block = blocks_of(file[present], offset[present], length[present], self._store.block_bytes)  # type: ignore[attr-defined]
        objects: Any = self._store.objects  # type: ignore[attr-defined]
        places = zip(file.tolist(), block.tolist(), strict=True)
        return dict.fromkeys((objects[self._paths[number]], one) for number, one in places)

    def drop(self) -> None:
        self._near.clear()
        super().drop()

    def _find(self, record: int) -> RecordLocation:
        """Return the location of a record; OSError if an index cannot be read."""
        return self.locate(record)

    def _begin(self, records: Sequence[int]) -> Begun:
        asked: dict[int, Future[bytes] | bytes] = {}
        stored: list[int] = []
        ranges: list[ByteRange] = []
        for r in records:
            try:
                place = self._find(r)
            except OSError as error:
                asked[r] = _failed(error)
                continue
            if place.length:
                stored.append(r)
                ranges.append(ByteRange(place.path, place.offset, place.length))
            else:
                asked[r] = b""
        try:
            fetched = self._fetch(stored, ranges) if ranges else []
            asked |= zip(stored, fetched, strict=True)
        except Exception as error:  # noqa: BLE001 - a store may raise anything; its rows carry it
            asked |= {r: _failed(error) for r in stored}
        return asked

    def _fetch(self, records: Sequence[int], ranges: Sequence[ByteRange]) -> Sequence[Future[bytes] | bytes]:
        """Begin to read the ranges of records."""
        return self._store.fetch(ranges)

    def _checked(self, record: int, content: bytes) -> bytes | BaseException:
        place = self.locate(record)
        content = bytes(content)
        if len(content) != (place.length or 0):
            return DataError(
                f"expected {place.length} bytes at byte {place.offset} of {place.path!r}, got {len(content)}"
            )
        if self._form == RecordForm.STORED or not content:
            return content
        try:
            return without_frame(content, self._form)
        except DataError as error:
            return DataError(f"{error} at byte {place.offset} of {place.path!r}")

    def close(self) -> None:
        self.cancel()
        self._store.close()


class StorageGroup(Storage):
    """Storages of one column, whose records are requested together: the frames of sequences.

    Args:
        storages: the storages, with as many records each.
    """

    asynchronous = True

    def __init__(self, storages: Sequence[AsyncStorage]) -> None:
        self._storages = storages

    @property
    def network_wait_ns(self) -> int:
        return sum(s.network_wait_ns for s in self._storages)

    def __len__(self) -> int:
        return len(self._storages[0])

    def locate(self, record: int) -> RecordLocation:
        return self._storages[0].locate(record)

    def content(self, record: int) -> bytes:
        return b"".join(s.content(record) for s in self._storages)

    def absent(self) -> Bools | None:
        return None

    def lower(self, c: Lowering, reader: int, dtype: DType, item: tuple[int, ...], layout: str) -> Value:
        raise StateError("expected a column that reads each storage of its group, got a request for all in one")

    def joined(self, others: Sequence[StorageGroup]) -> StorageGroup:
        raise ArgumentError("expected readers whose rows have one record per output, got a reader of sequences")

    def request(self, records: npt.NDArray[np.int64], batches: int) -> None:
        for storage in self._storages:
            storage.request(records, batches)

    @property
    def looks_ahead(self) -> bool:
        return any(storage.looks_ahead for storage in self._storages)

    def look_ahead(self, records: npt.NDArray[np.int64]) -> int:
        return sum(storage.look_ahead(records) for storage in self._storages)

    def forget_look_ahead(self) -> None:
        for storage in self._storages:
            storage.forget_look_ahead()

    def drop(self) -> None:
        for storage in self._storages:
            storage.drop()

    def cancel(self) -> None:
        for storage in self._storages:
            storage.cancel()

    def close(self) -> None:
        for storage in self._storages:
            storage.close()


class TakeRecords(Operator, ABC):
    """Base of operators that take records of an asynchronous storage. Input: their number, int64."""

    hidden = True
    devices = ("cpu",)
    storage = arg("object", doc="The storage.")

    @abstractmethod
    def results_of(self, row: RowContext, found: list[Any]) -> list[Any]:
        """Convert what the storage has for each row. An exception fails its row."""

    def runs_batches(self, args: Mapping[str, Any]) -> bool:
        return True

    def reference(self, row: RowContext, number: Any) -> Any:
        found = self.run_rows([row], [(number,)])[0]
        if isinstance(found, BaseException):
            raise found
        return found

    def run_rows(self, rows: list[RowContext], inputs: list[tuple[Any, ...]]) -> list[Any]:
        if not rows:
            return []
        return self.results_of(rows[0], list(rows[0]["storage"].take([int(number) for (number,) in inputs])))


class Fetch(TakeRecords, name="_fetch"):
    """Return records of an asynchronous storage. Input: their number, int64. Output: of the type ``spec``."""

    spec = arg("object", doc="Type and axes of a record.")

    def infer(self, c: Any, number: Any) -> Spec:
        spec: Spec = c.const("spec")
        return spec

    def results_of(self, row: RowContext, found: list[Any]) -> list[Any]:
        spec: Spec = row["spec"]
        return [f if isinstance(f, BaseException) else _items(f, spec) for f in found]


def _items(content: bytes, spec: Spec) -> npt.NDArray[Any] | DataError:
    size = spec.dtype.size * int(np.prod(spec.shape[1:], dtype=np.int64))
    if len(content) % size:
        return DataError(f"expected a multiple of {size} bytes, got {len(content)}")
    return np.frombuffer(content, spec.dtype.numpy).reshape(-1, *spec.shape[1:])


def blocks_of(
    file: npt.NDArray[np.int64], offset: npt.NDArray[np.int64], length: npt.NDArray[np.int64], block_bytes: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the blocks that byte ranges are in, as numbers of their files and of the blocks, in the ranges' order.

    Adjacent ranges share an entry; other blocks may occur several times.
    """
    has_bytes = length > 0
    file, offset, length = file[has_bytes], offset[has_bytes], length[has_bytes]
    first = offset // block_bytes
    count = (offset + length - 1) // block_bytes + 1 - first
    total = np.cumsum(count)
    inside = np.arange(int(total[-1]) if len(total) else 0) - np.repeat(total - count, count)
    file, block = np.repeat(file, count), np.repeat(first, count) + inside
    is_new = np.ones(len(block), bool)
    is_new[1:] = (file[1:] != file[:-1]) | (block[1:] != block[:-1])
    return file[is_new], block[is_new]


def _failed(error: Exception) -> Future[bytes]:
    future: Future[bytes] = Future()
    future.set_exception(error)
    return future


def _drop(batches: Sequence[Begun]) -> None:
    for asked in batches:
        for future in asked.values():
            if isinstance(future, Future):
                future.cancel()
