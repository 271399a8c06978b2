# SPDX-License-Identifier: Apache-2.0
"""Loops over a loader with a thread of their own, which makes each batch ready before the consumer asks for it."""

from __future__ import annotations

import os
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from ..contract.errors import ResourceError
from ..executor.delivery import Delivered, Mark, Taken
from ..executor.flight import SuppliedMemory
from ..executor.schedule import AtEnd
from ..frontends.pipeline import Pipeline
from ..graph.plan import Plan, PlannedOutput

_NO_COURSE = -1  # of errors and ends, which the path of ready batches passes on


class Looped(Protocol):
    """Part of a loader that its loops use (see :class:`~stoker.frameworks._epochs.EpochLoader`)."""

    pipeline: Pipeline
    _lock: threading.RLock
    _size: int | None
    _done: int
    _loop: int
    _at_end: AtEnd
    _orders: queue.SimpleQueue[bool] | None

    @property
    def _plan(self) -> Plan: ...

    def _begin(self) -> int: ...

    def _require_current(self, loop: int) -> None: ...

    def _is_left_out(self, delivered: Delivered) -> bool: ...

    def _allocate(self, output: int, planned: PlannedOutput, rows: int) -> SuppliedMemory | None: ...

    def _arrays(self, delivered: Delivered, plan: Plan) -> list[Any]: ...

    def _named(self, arrays: list[Any]) -> Any: ...

    def _thread_context(self) -> AbstractContextManager[Any]: ...

    def set_epoch(self, epoch: int) -> None: ...


@dataclass(slots=True)
class _Ready:
    """Batch in the framework's arrays, or its error, or the end of the epoch.

    Attributes:
        course: of the pipeline when the batch was taken; another one for an error or an end.
        mark: position after the batch.
        done: number of the epoch's batches up to this one.
        batch: the arrays.
        taken: what the pipeline gave, for an error or an end; None if it gave nothing.
        error: the error that the consumer raises; None at the end.
    """

    course: int
    mark: Mark
    done: int
    batch: Any = None
    taken: Taken | None = None
    error: BaseException | None = None


class _Producer:
    """Work of a loop's thread: one batch for each order, until an order is False.

    It does not refer to the loop, which ends it when no caller refers to the loop any more.
    """

    def __init__(self, loader: Looped, context: AbstractContextManager[Any]) -> None:
        self._loader = loader
        self._context = context
        self._done = loader._done
        self._course = loader.pipeline.execution.course
        self._mark = loader.pipeline.execution.mark
        self.orders: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self.items: deque[_Ready] = deque()
        self.is_awaited = False  # set by the consumer before it looks at `items` for the last time
        self.signals: queue.SimpleQueue[None] = queue.SimpleQueue()

    def run(self) -> None:
        with self._context:
            while self.orders.get():
                try:
                    self.items.append(self._make())
                except BaseException as failure:  # noqa: BLE001 - the consumer waits for an answer, and raises it
                    self.items.append(_Ready(_NO_COURSE, self._mark, self._done, error=failure))
                if self.is_awaited:
                    self.signals.put(None)

    def _make(self) -> _Ready:
        loader = self._loader
        if loader._size is not None and self._done >= loader._size:
            return _Ready(_NO_COURSE, self._mark, self._done)
        taken = loader.pipeline.take(self._course, loader._at_end, loader._allocate)
        delivered = taken.delivered
        if taken.error is not None or delivered is None or loader._is_left_out(delivered):
            return _Ready(_NO_COURSE, taken.mark, self._done, taken=taken, error=taken.error)
        self._done += 1
        try:
            batch = loader._named(loader._arrays(delivered, loader._plan))
        except Exception as failure:  # noqa: BLE001 - the error of this batch
            return _Ready(_NO_COURSE, taken.mark, self._done, taken=taken, error=failure)
        return _Ready(self._course, taken.mark, self._done, batch)


class BackgroundLoop:
    """One pass over a loader, of which a thread takes the batches and makes the framework's arrays of them.

    One batch is ready ahead of the consumer. The path of a ready batch is short, because after a training step it is in
    no cache, and each function on it costs microseconds. Everything rare has no item there, or one of another course.
    """

    __slots__ = (
        "__weakref__", "_execution", "_items", "_loader", "_lock", "_number", "_order", "_over", "_producer",
    )  # fmt: skip

    def __init__(self, loader: Looped) -> None:
        self._loader = loader
        self._lock = loader._lock
        self._execution = loader.pipeline.execution
        self._number = 0
        self._over = False
        self._producer: _Producer | None = None
        self._items: deque[_Ready] = deque()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with self._lock:
            items = self._items or self._await()
            ready, execution = items[0], self._execution
            if ready.course != execution.course:
                return self._without_batch(ready)
            execution.mark = ready.mark
            self._loader._done = ready.done
            self._order(True)
            items.popleft()  # after the order, so that after Ctrl-C the item is there or another one is in flight
            return ready.batch

    def _start(self) -> None:
        loader = self._loader
        self._number = loader._begin()
        producer = _Producer(loader, loader._thread_context())
        thread = threading.Thread(target=producer.run, name="stoker loop", daemon=True)
        try:
            thread.start()
        except RuntimeError as failure:
            raise ResourceError(f"the thread of a loop with `background=True` cannot start: {failure}") from failure
        self._producer, self._items, self._order = producer, producer.items, producer.orders.put
        loader._orders = producer.orders
        _running.add(self)
        self._order(True)

    def _await(self) -> deque[_Ready]:
        """Return the items after the thread has made one. Every order is answered, and one is in flight."""
        if self._over:
            raise StopIteration
        if self._producer is None:
            self._start()
        producer = self._producer
        assert producer is not None
        self._loader._require_current(self._number)
        self._execution._check_usable()  # a closed pipeline has ended the thread, and a forked process has none
        asked = time.perf_counter()
        producer.is_awaited = True
        try:
            while not producer.items:
                producer.signals.get()
        finally:
            producer.is_awaited = False
        self._execution.waited(time.perf_counter() - asked)
        return producer.items

    def _without_batch(self, ready: _Ready) -> Any:
        """Raise the error that forbids a batch's delivery, a batch's own one, or StopIteration at the end."""
        loader = self._loader
        loader._require_current(self._number)
        if ready.course != _NO_COURSE:
            self._execution.require_course(ready.course)
        if ready.taken is not None:
            self._execution.deliver(ready.taken)
            loader._done = ready.done
        if ready.error is None:
            self._over = True
            self._items.popleft()
            loader.set_epoch(self._execution.mark.epoch + 1)
            raise StopIteration
        self._order(True)
        self._items.popleft()
        try:
            raise ready.error
        finally:
            del ready  # the error's traceback must not keep it

    def forget_thread(self) -> None:
        """Forget the items, in a forked process, which has no thread that makes others."""
        self._items = deque()

    def __del__(self) -> None:
        if self._producer is not None:
            self._producer.orders.put(False)


_running: weakref.WeakSet[BackgroundLoop] = weakref.WeakSet()


def _begin_child() -> None:
    for loop in list(_running):
        loop.forget_thread()


os.register_at_fork(after_in_child=_begin_child)
