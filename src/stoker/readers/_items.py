# SPDX-License-Identifier: Apache-2.0
"""Samples that are tuples of arrays; those of a map-style data set are made by worker processes.

The workers start on a batch as soon as the sampler has chosen its rows.
"""

from __future__ import annotations

import os
import queue
import random
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..contract.argument import arg
from ..contract.columns import Column
from ..contract.errors import ArgumentError, DataError, StateError
from ..contract.feed import to_array
from ..contract.lowering import Lowering, UndeclaredTypes
from ..contract.operator import RowContext, Spec
from ..contract.step import Value
from ..contract.storage import Bools, RecordLocation, Storage
from ..contract.text import brief, reason_of
from ..contract.thread_start import start_thread
from ..contract.types import DType
from ..contract.workers import WorkerPool
from ._fetching import Asked, RequestedStorage, TakeRecords

_IDLE_S = 0.2  # longest sleep of the thread that waits for requests
_BUSY_S = 0.005  # longest wait for results while requests may come


@dataclass
class ItemMaker:
    """Producer of single samples; it runs in the worker processes.

    Attributes:
        source: the data set.
        outputs: number of values of a sample, or the keys of a sample that is a dict.
    """

    source: Any
    outputs: int | tuple[str, ...]
    process: int = 0

    def __call__(self, index: int) -> tuple[Any, ...]:
        if self.process != os.getpid():
            self.process = os.getpid()
            _seed_generators()
        found = self.source[index]
        if isinstance(self.outputs, tuple):
            return tuple(as_array(_entry(found, key)) for key in self.outputs)
        if self.outputs == 1 and not (isinstance(found, (tuple, list)) and len(found) == 1):
            return (as_array(found),)
        if not isinstance(found, (tuple, list)) or len(found) != self.outputs:
            got = f"{len(found)} values" if isinstance(found, (tuple, list)) else f"a {type(found).__name__}"
            raise DataError(f"expected a sample of {self.outputs} values, got {got}")
        return tuple(as_array(value) for value in found)


def _seed_generators() -> None:
    """Seed Python's, NumPy's and torch's generators. Processes that are forked would all draw the same numbers."""
    seed = int.from_bytes(os.urandom(4), "little")
    random.seed(seed)
    np.random.seed(seed)
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(seed)


def _entry(sample: Any, key: str) -> Any:
    if not isinstance(sample, Mapping) or key not in sample:
        got = sorted(map(str, sample)) if isinstance(sample, Mapping) else type(sample).__name__
        raise DataError(f"expected a sample with the key {key!r}, got {brief(got)}")
    return sample[key]


def as_array(value: Any) -> npt.NDArray[Any]:
    """Convert an array, tensor, image, number, text or bytes to an array.

    Raises:
        DataError: the value is none of these.
    """
    try:
        if isinstance(value, str):
            return np.frombuffer(value.encode(), np.uint8)
        if hasattr(value, "__array_interface__") and not isinstance(value, np.ndarray):  # Pillow's images
            return to_array(np.asarray(value))
        return to_array(value)
    except (TypeError, ValueError, BufferError) as error:
        raise DataError(str(error)) from error


class ItemStorage(RequestedStorage):
    """Samples of a data set. The value of a record is a tuple of arrays.

    One thread talks with the worker processes: it sends requests, and sets the futures of results.

    Args:
        source: the data set.
        outputs: see :class:`ItemMaker`.
    """

    def __init__(self, source: Any, outputs: int | tuple[str, ...]) -> None:
        super().__init__()
        self._source, self._maker = source, ItemMaker(source, outputs)
        self._size = len(source)
        self._inbox: queue.SimpleQueue[tuple[int, Future[Any]] | None] = queue.SimpleQueue()
        self._make_workers: Callable[[], WorkerPool] | None = None
        self._workers: WorkerPool | None = None
        self._producer = -1
        self._thread: threading.Thread | None = None
        self._specs: tuple[Spec, ...] | None = None

    def __len__(self) -> int:
        return self._size

    def use(self, make_workers: Callable[[], WorkerPool]) -> None:
        self._workers = make_workers()
        self._producer = self._workers.add(self._maker, stateful=False)

    def locate(self, record: int) -> RecordLocation:
        return RecordLocation(f"sample {record} of the data set")

    def absent(self) -> Bools | None:
        return None

    def joined(self, others: Sequence[Any]) -> ItemStorage:
        raise ArgumentError("expected readers that can be joined: give one data set, such as torch's ConcatDataset")

    def _begin(self, records: Sequence[int]) -> Asked:
        asked: Asked = {record: Future() for record in records}
        if asked:
            self._serve()
        for item in asked.items():
            self._inbox.put(item)
        return asked

    def _checked(self, record: int, content: Any) -> Any:
        return content

    def specs(self) -> tuple[Spec, ...] | None:
        """Return the types of a sample's values, those of the first requested one; None if none was requested.

        Raises:
            DataError: no requested sample could be made.
        """
        if self._specs is None:
            with self._lock:
                futures = [f for batch in self._ahead for f in batch.values() if isinstance(f, Future)]
            failed: Exception | None = None
            for future in futures:
                try:
                    values: Any = self._wait(future)
                except Exception as error:  # noqa: BLE001 - a data set may raise anything; the next sample may be good
                    failed = failed or error
                    continue
                self._specs = tuple(Spec(DType.of(v.dtype), (None,) * v.ndim) for v in values)
                break
            if self._specs is None and failed is not None:
                raise DataError(
                    f"expected at least one sample of the first batch, whose types hold for all, got "
                    f"{type(failed).__name__}: {reason_of(failed)}"
                ) from failed
        return self._specs

    def _serve(self) -> None:
        """Start the processes, and then the thread."""
        with self._lock:
            if self._thread is not None or self._cancelled:
                return
            if self._workers is None:
                raise StateError("expected a pipeline with worker processes for `readers.dataset`, got none")
            self._workers.start()
            self._thread = threading.Thread(target=self._work, name="stoker-dataset", daemon=True)
            start_thread(self._thread)

    def _work(self) -> None:
        workers = self._workers
        assert workers is not None
        tasks: dict[int, tuple[Any, Future[Any]]] = {}
        number = 0
        while not self._cancelled:
            for record, future in self._requests(wait=not tasks):
                if future.set_running_or_notify_cancel():
                    tasks[number] = (workers.submit(self._producer, record), future)
                    number += 1
            try:
                if tasks:
                    workers.wait(_BUSY_S)
                for key in [k for k, (task, _) in tasks.items() if task.answer is not None]:
                    task, future = tasks.pop(key)
                    self._deliver(workers, task, future)
            except StateError:  # the pipeline is closed
                return

    def _requests(self, *, wait: bool) -> list[tuple[int, Future[Any]]]:
        """Return the pending requests."""
        found: list[tuple[int, Future[Any]]] = []
        while True:
            try:
                item = self._inbox.get(timeout=_IDLE_S) if wait and not found else self._inbox.get_nowait()
            except queue.Empty:
                return found
            if item is not None:
                found.append(item)

    @staticmethod
    def _deliver(workers: WorkerPool, task: Any, future: Future[Any]) -> None:
        try:
            future.set_result(workers.result(task))
        except Exception as error:  # noqa: BLE001 - a data set may raise anything; its row carries it
            future.set_exception(error)

    def close(self) -> None:
        self.cancel()
        self._inbox.put(None)
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()
        if self._workers is not None:
            self._workers.close()


class TupleStorage(Protocol):
    """Storage whose records are tuples of arrays."""

    def specs(self) -> tuple[Spec, ...] | None:
        """Return the types of the arrays; None if they are unknown before the first batch."""
        ...


class ItemColumn(Column):
    """Array in the tuples that are a storage's records.

    Args:
        name: name in messages.
        storage: the storage, a :class:`TupleStorage`.
        output: number of the array in a tuple.
        spec: type and axes of the arrays; by default those of the first batch, which the plan finds.
        optional: samples may lack the array; its first axis has extent 0 there.
    """

    def __init__(
        self, name: str, storage: Any, output: int, spec: Spec | None = None, *, optional: bool = False
    ) -> None:  # fmt: skip
        self.name, self.items, self.output, self.optional = name, storage, output, optional
        self.dtype, self.rank = (DType.UINT8, 0) if spec is None else (spec.dtype, len(spec.shape))
        self.layout = "" if spec is None else spec.layout
        self._spec = spec

    def __len__(self) -> int:
        return len(self.items)

    @property
    def storage(self) -> Storage:
        found: Storage = self.items
        return found

    def lower(self, c: Lowering, reader: int) -> Value:
        return lower_items(c, reader, self.items)[self.output]

    def row(self, index: int) -> npt.NDArray[Any]:
        found: Any = self.items.take([index])[0]
        if isinstance(found, BaseException):
            raise found
        return np.asarray(found[self.output])

    def absent(self) -> Bools | None:
        return None

    def joined(self, others: Sequence[Column]) -> ItemColumn:
        return ItemColumn(self.name, self.items.joined(others), self.output, self._spec, optional=self.optional)


def lower_items(c: Lowering, reader: int, storage: TupleStorage) -> tuple[Value, ...]:
    """Build the steps that take the samples of a batch's rows.

    Raises:
        UndeclaredTypes: no batch has been requested yet, so the types are unknown.
    """
    specs = storage.specs()
    if specs is None:  # before the first batch
        raise UndeclaredTypes(c.scope.node)
    number = c.native("index", [], [(DType.INT64, (), "")], attrs=(reader,))[0]
    found: Any = c.apply("_item", number, storage=storage, specs=specs)
    return found if isinstance(found, tuple) else (found,)


def lower_item_columns(c: Lowering) -> tuple[Value, ...]:
    """Build the steps that read the columns of the node's data set. Columns over one storage take a record once."""
    reader = c.reader()
    taken: dict[int, tuple[Value, ...]] = {}
    found: list[Value] = []
    for column in c.source.columns:
        if not isinstance(column, ItemColumn):
            found.append(column.lower(c, reader))
            continue
        key = id(column.storage)
        if key not in taken:
            taken[key] = lower_items(c, reader, column.items)
        found.append(taken[key][column.output])
    return tuple(found)


class Item(TakeRecords, name="_item"):
    """Return records that are tuples of arrays. Input: their number, int64. Outputs: the arrays."""

    specs = arg("object", doc="Types of the values of a sample.")

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return len(args["specs"])

    def infer(self, c: Any, number: Any) -> tuple[Spec, ...]:
        found: tuple[Spec, ...] = c.const("specs")
        return found

    def results_of(self, row: RowContext, found: list[Any]) -> list[Any]:
        return [f if isinstance(f, BaseException) or len(f) > 1 else f[0] for f in found]
