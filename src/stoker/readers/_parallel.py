# SPDX-License-Identifier: Apache-2.0
"""Sources in worker processes: producers that run in the workers, and feeders that order their results here."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..contract.errors import DataError, SourceLine, StateError
from ..contract.feed import WorkerPool, to_array
from ._declared import Declared
from ._feeding import CallbackFeeder, CheckedFeeder, Column, Items, as_column, split

_NUMBERS = (bool, int, float)


# ---- in the worker ----


def _value(x: Any, row: int) -> Any:
    """Return an array. Numbers stay numbers, because the other side knows the declared type."""
    if isinstance(x, _NUMBERS):
        return x
    try:
        return to_array(x)
    except (TypeError, ValueError, BufferError) as error:
        raise DataError(f"{error} in row {row}") from error


def _pack_row(x: Any, count: int, row: int) -> tuple[Any, ...]:
    return tuple(_value(v, row) for v in split(x, count, "values"))


def _pack_batch(data: Any, count: int) -> tuple[Any, ...]:
    columns = [as_column(c) for c in split(data, count, "batches")]
    return tuple([_value(x, r) for r, x in enumerate(c)] if isinstance(c, list) else to_array(c) for c in columns)


@dataclass(frozen=True)
class RowProducer:
    """Producer of some rows of a batch by a function. It returns (rows, whether the epoch ended after them)."""

    function: Callable[..., Any]
    make_argument: Callable[..., Any]
    outputs: int

    def __call__(self, request: tuple[int, int, int, int, int]) -> tuple[list[Any], bool]:
        sample, first, end, iteration, epoch = request
        rows: list[Any] = []
        for place in range(first, end):
            try:
                result = self.function(self.make_argument(sample + place, place, iteration, epoch))
            except StopIteration:
                return rows, True
            rows.append(_pack_row(result, self.outputs, place))
        return rows, False


@dataclass(frozen=True)
class BatchProducer:
    """Producer of a batch by a function. It returns ([batch], False), or ([], True) at the end of the epoch."""

    function: Callable[..., Any]
    make_argument: Callable[..., Any]
    outputs: int

    def __call__(self, request: tuple[int, int, int, int, int]) -> tuple[list[Any], bool]:
        sample, first, _, iteration, epoch = request
        try:
            result = self.function(self.make_argument(sample, first, iteration, epoch))
        except StopIteration:
            return [], True
        return [_pack_batch(result, self.outputs)], False


@dataclass
class ItemProducer:
    """Producer that iterates over a source. Requests: ("take", n), ("reset", 0), ("seek", n)."""

    items: Items
    by_batch: bool
    outputs: int

    def __call__(self, request: tuple[str, int]) -> tuple[list[Any], bool]:
        what, number = request
        if what == "reset":
            self.items.reset()
        elif what == "seek":
            self.items.seek(number)
        else:
            try:
                if self.by_batch:
                    return [_pack_batch(self.items.take(), self.outputs)], False
                rows = self.items.take_rows(number)
            except StopIteration:
                return [], True
            return [_pack_row(x, self.outputs, r) for r, x in enumerate(rows)], len(rows) < number
        return [], False


# ---- in the main process ----


@dataclass(frozen=True)
class _RequestedBatch:
    """Requested batch: its identity, and its tasks in the order of the rows."""

    at: tuple[int, ...]
    tasks: tuple[Any, ...]


class ParallelCallbackFeeder(CallbackFeeder):
    """Feeder that calls a function in worker processes and prefetches batches. Several processes may share a batch."""

    parallel = True

    def __init__(self, declared: Declared, function: Callable[..., Any], make_argument: Callable[..., Any], *,
                 by_batch: bool, ahead: int) -> None:  # fmt: skip
        super().__init__(declared, function, make_argument, by_batch=by_batch, copies=False)
        self._depth = ahead
        self._requested: deque[_RequestedBatch] = deque()
        self._workers: WorkerPool | None = None
        self._producer = -1

    def use(self, workers: WorkerPool) -> None:
        """Run the function in these worker processes."""
        assert self._make_argument is not None
        kind = BatchProducer if self._by_batch else RowProducer
        self._workers = workers
        self._producer = workers.add(
            kind(self._function, self._make_argument, len(self._declared.outputs)), stateful=False
        )  # fmt: skip

    @property
    def ready(self) -> bool:
        """Return whether the next batch has arrived, or was not requested yet."""
        if self._workers is None or self._ended or not self._requested:
            return True
        return all(map(self._workers.ready, self._requested[0].tasks))

    def wait(self, source: SourceLine | None) -> None:
        """Wait for a short time."""
        assert self._workers is not None
        self._workers.wait()

    def pull(self, count: int, epoch: int) -> tuple[Column, ...]:
        if self._ended:
            raise StopIteration
        self._prefetch(count, epoch)
        rows, self._ended, failed = self._results()
        self._forget_first()
        self._sample, self._iteration = self._sample + count, self._iteration + 1
        if failed is not None:
            raise failed
        if self._ended:
            self._drop()
        else:
            self._prefetch(count, epoch)
        if not rows:
            if not self._gave:
                raise DataError("expected data from the source, got none: it ended immediately")
            raise StopIteration
        return self._batch(rows[0], count) if self._by_batch else self._rows(rows)

    def _results(self) -> tuple[list[Any], bool, Exception | None]:
        """Return the results of the first batch's tasks, up to the source's end or an error of the user's function."""
        assert self._workers is not None
        rows: list[Any] = []
        ended = False
        for task in self._requested[0].tasks:
            try:
                part, ended = self._workers.result(task)
            except StateError:  # the pipeline is closed
                raise
            except Exception as error:  # noqa: BLE001 - whatever the user's function raised comes with its batch
                return rows, ended, error
            rows += part
            if ended:
                break
        return rows, ended, None

    def _prefetch(self, count: int, epoch: int) -> None:
        """Request this batch, if it was not requested before, and the following ones."""
        at = (self._sample, 0 if self._by_batch else count, self._iteration, epoch)
        if self._requested and self._requested[0].at != at:
            self._drop()
        while len(self._requested) <= self._depth:
            n = len(self._requested)
            self._requested.append(self._ask((at[0] + n * count, at[1], at[2] + n, epoch), count))

    def _ask(self, at: tuple[int, ...], count: int) -> _RequestedBatch:
        assert self._workers is not None
        sample, _, iteration, epoch = at
        parts = 1 if self._by_batch else min(self._workers.count, count)
        bounds = [i * count // parts for i in range(parts + 1)]
        return _RequestedBatch(at, tuple(
            self._workers.submit(self._producer, (sample, first, end, iteration, epoch))
            for first, end in itertools.pairwise(bounds)
        ))  # fmt: skip

    def _forget_first(self) -> None:
        assert self._workers is not None
        for task in self._requested.popleft().tasks:
            self._workers.drop(task)

    def _drop(self) -> None:
        while self._requested:
            self._forget_first()


class ParallelIterableFeeder(CheckedFeeder):
    """Feeder that reads an iterable in one worker process and prefetches batches."""

    parallel = True

    def __init__(self, declared: Declared, items: Items, *, by_batch: bool, ahead: int) -> None:
        super().__init__(declared, copies=False)
        self._items = items  # the worker iterates over its copy; this one only describes the source
        self._by_batch = by_batch
        self._depth = ahead
        self._asked: deque[Any] = deque()
        self._received: deque[Any] = deque()  # rows (or a batch) that arrived and were not delivered yet
        self._taken = 0
        self._is_exhausted = False  # the worker has reached the end of the source
        self._ended = False
        self._is_position_lost = False
        self._workers: WorkerPool | None = None
        self._producer = -1

    def use(self, workers: WorkerPool) -> None:
        """Run the iterable in one of these worker processes."""
        self._workers = workers
        calls = ItemProducer(self._items, self._by_batch, len(self._declared.outputs))
        self._producer = workers.add(calls, stateful=True)

    @property
    def ready(self) -> bool:
        """Return whether there is a result to deliver, or nothing was requested yet."""
        if self._workers is None or self._received or self._is_exhausted or self._is_position_lost or not self._asked:
            return True
        return self._workers.ready(self._asked[0])

    def wait(self, source: SourceLine | None) -> None:
        """Wait for a short time."""
        assert self._workers is not None
        self._workers.wait()

    @property
    def position(self) -> Any:
        if self._items.is_sequence and self._taken:  # a sequence may begin again without an epoch's end
            return (self._taken - 1) % max(1, len(self._items.source)) + 1
        return self._taken

    def pull(self, count: int, epoch: int) -> tuple[Column, ...]:
        if self._is_position_lost:
            raise StateError(
                "the process that went through the source of `external_source` has ended, and its place is lost. "
                "`pipe.reset()` begins the next epoch; a sequence goes on by itself"
            )
        if self._ended:
            raise StopIteration
        wanted = 1 if self._by_batch else count
        while len(self._received) < wanted and not self._is_exhausted:
            self._receive(wanted)
        self._ended = not self._received
        if self._ended:
            raise StopIteration
        taken = [self._received.popleft() for _ in range(min(wanted, len(self._received)))]
        self._taken += len(taken)
        return self._batch(taken[0], count) if self._by_batch else self._rows(taken)

    def _receive(self, wanted: int) -> None:
        assert self._workers is not None
        self._prefetch(wanted)
        try:
            rows, self._is_exhausted = self._workers.result(self._asked[0])
        except StateError as error:
            if error.__cause__ is None:  # the pipeline is closed; else it is the user's, from the worker
                raise
            self._fail(wanted, died=False)
            raise
        except Exception as error:
            self._fail(wanted, died=getattr(error, "ends_process", False))
            raise
        self._received.extend(rows)
        self._asked.popleft()
        if self._is_exhausted:
            self._drop()
        else:
            self._prefetch(wanted)

    def _prefetch(self, wanted: int) -> None:
        assert self._workers is not None
        while len(self._asked) <= self._depth:
            self._asked.append(self._workers.submit(self._producer, ("take", wanted)))

    def _fail(self, wanted: int, *, died: bool) -> None:
        """Handle the failure of the first request."""
        self._asked.popleft()
        if not died:
            return
        self._drop()  # the other requests failed as well
        if self._items.is_sequence:
            self.seek(min(self.position + len(self._received) + wanted, len(self._items.source)))
        else:
            self._is_position_lost = True

    def _drop(self) -> None:
        assert self._workers is not None
        while self._asked:
            self._workers.drop(self._asked.popleft())

    def _move(self, request: tuple[str, int]) -> None:
        """Make the worker continue at another position."""
        self._drop()
        self._received.clear()
        self._taken, self._is_exhausted, self._ended, self._is_position_lost = request[1], False, False, False
        assert self._workers is not None
        self._workers.drop(self._workers.submit(self._producer, request))

    def reset(self) -> None:
        if self._items.cycle == "no" or (self._taken == 0 and not self._ended and not self._is_position_lost):
            return
        self._move(("reset", 0))

    def require_resumable(self, source: SourceLine | None) -> None:
        if not self._items.is_sequence:
            super().require_resumable(source)

    def seek(self, position: Any) -> None:
        if not self._items.is_sequence:
            super().seek(position)
        self._move(("seek", int(position)))
