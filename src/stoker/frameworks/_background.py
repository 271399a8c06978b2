# SPDX-License-Identifier: Apache-2.0
"""Loops over a loader. A thread of a loop may make each batch ready before the consumer asks for it."""

from __future__ import annotations

import contextlib
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
_LONG_S = 0.005  # a step of the consumer next to which the switches between threads, some 0.1 ms, are cheap
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.0005, 0.05  # in which a thread does not look whether its batch has been taken
_LONG_STEPS = 8  # in a row, each with a finished batch at its end, after which a loop starts a thread by itself


class Looped(Protocol):
    """Part of a loader that its loops use (see :class:`~stoker.frameworks._epochs.EpochLoader`)."""

    pipeline: Pipeline
    _lock: threading.RLock
    _size: int | None
    _done: int
    _loop: int
    _at_end: AtEnd
    _producer: Producer | None

    @property
    def _plan(self) -> Plan: ...

    def _begin(self) -> int: ...

    def _next(self, loop: int) -> Any: ...

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


class Producer:
    """Work of a loop's thread: one batch whenever none is ready, until the loop ends it.

    Waking a thread costs the consumer some 20 us. During long steps the thread therefore looks by itself, some times in
    each step, whether its batch has been taken, and the consumer wakes it only before it waits.

    It does not refer to the loop, which ends it when no caller refers to the loop any more.

    Attributes:
        items: the ready batch, which the consumer removes.
        is_awaited: set by the consumer before it looks at `items` for the last time.
        looks: the thread looks by itself whether the batch has been taken. It may still miss what is taken at the
            moment of a change; then the consumer's next request wakes it.
    """

    def __init__(self, loader: Looped, context: AbstractContextManager[Any], *, looks: bool) -> None:
        self._loader = loader
        self._context = context
        self._done = loader._done
        self.course = loader.pipeline.execution.course
        self._mark = loader.pipeline.execution.mark
        self._step_s = _LONG_S  # the consumer's last step
        self._ended = False
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.items: deque[_Ready] = deque()
        self.is_awaited = False
        self.looks = looks
        self.signals: queue.SimpleQueue[None] = queue.SimpleQueue()

    def run(self) -> None:
        with self._context:
            while not self._ended:
                try:
                    self.items.append(self._make())
                except BaseException as failure:  # noqa: BLE001 - the consumer waits for an answer, and raises it
                    self.items.append(_Ready(_NO_COURSE, self._mark, self._done, error=failure))
                if self.is_awaited:
                    self.signals.put(None)
                self._wait_for_consumer()

    def _wait_for_consumer(self) -> None:
        """Return when the batch has been taken, or at the end."""
        ready = time.perf_counter()
        pause = self._step_s / 2
        while self.items and not self._ended:
            if self.looks:
                with contextlib.suppress(queue.Empty):
                    self._wakes.get(timeout=min(max(pause, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S))
                pause = (time.perf_counter() - ready) / 4
            else:
                self._wakes.get()
        self._step_s = time.perf_counter() - ready
        self.looks = self._step_s >= _LONG_S

    def wake(self) -> None:
        """Let the thread look at `items`. A wake that it has not seen yet serves as well."""
        if self._wakes.empty():
            self._wakes.put(None)

    def end(self) -> None:
        """End the thread after the batch that it works on. It may have ended."""
        self._ended = True
        self._wakes.put(None)

    def _make(self) -> _Ready:
        loader = self._loader
        if loader._size is not None and self._done >= loader._size:
            return _Ready(_NO_COURSE, self._mark, self._done)
        taken = loader.pipeline.take(self.course, loader._at_end, loader._allocate)
        delivered = taken.delivered
        if taken.error is not None or delivered is None or loader._is_left_out(delivered):
            return _Ready(_NO_COURSE, taken.mark, self._done, taken=taken, error=taken.error)
        self._done += 1
        try:
            batch = loader._named(loader._arrays(delivered, loader._plan))
        except Exception as failure:  # noqa: BLE001 - the error of this batch
            return _Ready(_NO_COURSE, taken.mark, self._done, taken=taken, error=failure)
        return _Ready(self.course, taken.mark, self._done, batch)


class Loop:
    """One pass over a loader, of which a thread may take the batches and make the framework's arrays of them.

    With a thread, one batch is ready ahead of the consumer. The path of a ready batch is short, because after a
    training step it is in no cache, and each function on it costs microseconds. Everything rare has no item there, or
    one of another course.

    Args:
        loader: the loader.
        background: True for a thread from the first batch on, False for none, None for one that starts after
            `_LONG_STEPS` long steps of the consumer in a row at whose ends a finished batch waited. A pipeline that is
            slower than its consumer, and one of small batches, then have none: the thread would gain nothing there.
    """

    __slots__ = (
        "__weakref__", "_background", "_execution", "_items", "_loader", "_lock", "_number", "_over", "_producer",
        "_returned", "_steps",
    )  # fmt: skip

    def __init__(self, loader: Looped, background: bool | None) -> None:
        self._loader = loader
        self._lock = loader._lock
        self._execution = loader.pipeline.execution
        self._background = background
        self._number = 0
        self._over = False
        self._producer: Producer | None = None
        self._items: deque[_Ready] = deque()
        self._returned = 0.0  # time at which the consumer got its last batch
        self._steps = 0  # long steps in a row

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        with self._lock:
            items = self._items or self._await()
            if items is None:
                return self._work_here()
            ready, execution = items[0], self._execution
            if ready.course != execution.course:
                return self._without_batch(ready)
            execution.mark = ready.mark
            self._loader._done = ready.done
            items.popleft()
            producer = self._producer
            if producer is not None and not producer.looks:
                producer.wake()
            return ready.batch

    def _work_here(self) -> Any:
        """Return the next batch, made on the consumer's thread, and count the consumer's long steps."""
        execution = self._execution
        before = execution.ready_batches
        is_long = time.perf_counter() - self._returned >= _LONG_S
        try:
            batch = self._loader._next(self._number)
        except StopIteration:
            self._over = True
            raise
        self._steps = self._steps + 1 if is_long and execution.ready_batches > before else 0
        self._returned = time.perf_counter()
        return batch

    def _start_if_it_pays(self) -> None:
        """Start the thread, unless the pipeline forbids it or the system has no thread left."""
        if self._steps < _LONG_STEPS:
            return
        if not self._loader.pipeline.may_take_ahead:
            self._background = False
            return
        try:
            self._start()
        except ResourceError:
            self._background = False

    def _start(self) -> None:
        loader = self._loader
        producer = Producer(loader, loader._thread_context(), looks=self._steps > 0)
        thread = threading.Thread(target=producer.run, name="stoker loop", daemon=True)
        try:
            thread.start()
        except RuntimeError as failure:
            raise ResourceError(f"the thread of a loop cannot start: {failure}") from failure
        self._producer, self._items = producer, producer.items
        loader._producer = producer
        _running.add(self)

    def _await(self) -> deque[_Ready] | None:
        """Return the items after the thread has made one; None without a thread."""
        if self._over:
            raise StopIteration
        if not self._number:
            self._number = self._loader._begin()
        if self._producer is None and self._background is not False:
            if self._background:
                self._start()
            else:
                self._start_if_it_pays()
        producer = self._producer
        if producer is None:
            return None
        self._loader._require_current(self._number)
        self._execution._check_usable()  # a closed pipeline has ended the thread, and a forked process has none
        asked = time.perf_counter()
        producer.is_awaited = True
        try:
            producer.wake()
            while not producer.items:
                producer.signals.get()
        finally:
            producer.is_awaited = False
        self._execution.waited(time.perf_counter() - asked)
        return producer.items

    def _without_batch(self, ready: _Ready) -> Any:
        """Raise the error that forbids a batch's delivery, a batch's own one, or StopIteration at the end."""
        loader, producer = self._loader, self._producer
        loader._require_current(self._number)
        if self._background is None and producer is not None and producer.course != self._execution.course:
            # The position has been changed. A loop without a thread continues there, so this one does, too.
            self._end_thread()
            return self._work_here()
        if ready.course != _NO_COURSE:
            self._execution.require_course(ready.course)
        if ready.taken is not None:
            self._execution.deliver(ready.taken)
            loader._done = ready.done
        if ready.error is None:
            self._over = True
            self._end_thread()
            loader.set_epoch(self._execution.mark.epoch + 1)
            raise StopIteration
        self._items.popleft()
        if producer is not None:
            producer.wake()
        try:
            raise ready.error
        finally:
            del ready  # the error's traceback must not keep it

    def _end_thread(self) -> None:
        producer, self._producer, self._items, self._steps = self._producer, None, deque(), 0
        if producer is not None:
            producer.end()
            self._loader._producer = None

    def forget_thread(self) -> None:
        """Forget the items, in a forked process, which has no thread that makes others."""
        self._items = deque()

    def __del__(self) -> None:
        if self._producer is not None:
            self._producer.end()


_running: weakref.WeakSet[Loop] = weakref.WeakSet()


def _begin_child() -> None:
    for loop in list(_running):
        loop.forget_thread()


os.register_at_fork(after_in_child=_begin_child)
