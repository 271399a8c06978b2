# SPDX-License-Identifier: Apache-2.0
"""Sources that run in worker processes: what the workers do, and what puts their results in order here."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..contract.errors import DataError, Source, StateError
from ..contract.feed import Workers, to_array
from ._declared import Declared
from ._feeding import CallbackFeeder, Column, Feeder, Items, as_column, split

_NUMBERS = (bool, int, float)


# ---- in the worker ----


def _value(x: Any, row: int) -> Any:
    """An array; numbers as they are, since the declared type is known to the other side."""
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
class RowCalls:
    """Calls a function for some rows of a batch; gives (rows, whether the epoch ended with them)."""

    function: Callable[..., Any]
    tells: Callable[..., Any]
    outputs: int

    def __call__(self, request: tuple[int, int, int, int, int]) -> tuple[list[Any], bool]:
        sample, first, end, iteration, epoch = request
        rows: list[Any] = []
        for place in range(first, end):
            try:
                made = self.function(self.tells(sample + place, place, iteration, epoch))
            except StopIteration:
                return rows, True
            rows.append(_pack_row(made, self.outputs, place))
        return rows, False


@dataclass(frozen=True)
class BatchCalls:
    """Calls a function for a batch; gives ([batch], False) or ([], True) at the end of the epoch."""

    function: Callable[..., Any]
    tells: Callable[..., Any]
    outputs: int

    def __call__(self, request: tuple[int, int, int, int, int]) -> tuple[list[Any], bool]:
        sample, first, _, iteration, epoch = request
        try:
            made = self.function(self.tells(sample, first, iteration, epoch))
        except StopIteration:
            return [], True
        return [_pack_batch(made, self.outputs)], False


@dataclass
class ItemCalls:
    """Goes through an iterable. Requests: ("take", n), ("reset", 0), ("seek", n)."""

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


# ---- here ----


@dataclass(frozen=True)
class _Ahead:
    """A batch that was asked for: what identifies it, and its parts in the order of its rows."""

    at: tuple[int, ...]
    tasks: tuple[Any, ...]


class ParallelCalls(CallbackFeeder):
    """From a function that runs in worker processes, some batches ahead; parts of a batch in several of them."""

    parallel = True

    def __init__(self, declared: Declared, function: Callable[..., Any], tells: Callable[..., Any], *, by_batch: bool,
                 ahead: int) -> None:  # fmt: skip
        super().__init__(declared, function, tells, by_batch=by_batch, copies=False)
        self._depth = ahead
        self._ahead: deque[_Ahead] = deque()
        self._workers: Workers | None = None
        self._producer = -1

    def use(self, workers: Workers) -> None:
        """Have the function run in these processes."""
        assert self._tells is not None
        kind = BatchCalls if self._by_batch else RowCalls
        self._workers = workers
        self._producer = workers.add(
            kind(self._function, self._tells, len(self._declared.outputs)), stateful=False
        )  # fmt: skip

    @property
    def ready(self) -> bool:
        """Whether the next batch has come, or was not asked for yet."""
        if self._workers is None or self._ended or not self._ahead:
            return True
        return all(map(self._workers.ready, self._ahead[0].tasks))

    def wait(self, source: Source | None) -> None:
        """Wait for a moment."""
        assert self._workers is not None
        self._workers.wait()

    def pull(self, count: int, epoch: int) -> tuple[Column, ...]:
        if self._ended:
            raise StopIteration
        self._look_ahead(count, epoch)
        rows, self._ended, failed = self._results()
        self._forget_first()
        self._sample, self._iteration = self._sample + count, self._iteration + 1
        if failed is not None:
            raise failed
        if self._ended:
            self._drop()
        else:
            self._look_ahead(count, epoch)
        if not rows:
            if not self._gave:
                raise DataError("expected data from the source, got none: it ended at once")
            raise StopIteration
        return self._batch(rows[0], count) if self._by_batch else self._rows(rows)

    def _results(self) -> tuple[list[Any], bool, Exception | None]:
        """What the parts of the first batch have given, up to the source's end or an error of the user's function."""
        assert self._workers is not None
        rows: list[Any] = []
        ended = False
        for task in self._ahead[0].tasks:
            try:
                part, ended = self._workers.result(task)
            except StateError:  # closed
                raise
            except Exception as error:  # noqa: BLE001 - whatever the user's function raised comes with its batch
                return rows, ended, error
            rows += part
            if ended:
                break
        return rows, ended, None

    def _look_ahead(self, count: int, epoch: int) -> None:
        """Ask for this batch, if that was not done, and for those after it."""
        at = (self._sample, 0 if self._by_batch else count, self._iteration, epoch)
        if self._ahead and self._ahead[0].at != at:
            self._drop()
        while len(self._ahead) <= self._depth:
            n = len(self._ahead)
            self._ahead.append(self._ask((at[0] + n * count, at[1], at[2] + n, epoch), count))

    def _ask(self, at: tuple[int, ...], count: int) -> _Ahead:
        assert self._workers is not None
        sample, _, iteration, epoch = at
        parts = 1 if self._by_batch else min(self._workers.count, count)
        bounds = [i * count // parts for i in range(parts + 1)]
        return _Ahead(at, tuple(
            self._workers.submit(self._producer, (sample, first, end, iteration, epoch))
            for first, end in itertools.pairwise(bounds)
        ))  # fmt: skip

    def _forget_first(self) -> None:
        assert self._workers is not None
        for task in self._ahead.popleft().tasks:
            self._workers.drop(task)

    def _drop(self) -> None:
        while self._ahead:
            self._forget_first()


class ParallelItems(Feeder):
    """From an iterable that a worker process goes through, some batches ahead."""

    parallel = True

    def __init__(self, declared: Declared, items: Items, *, by_batch: bool, ahead: int) -> None:
        super().__init__(declared, copies=False)
        self._items = items  # the worker's copy moves; this one only says what it is
        self._by_batch = by_batch
        self._depth = ahead
        self._asked: deque[Any] = deque()
        self._left: deque[Any] = deque()  # rows (or a batch) that have come and were not given yet
        self._taken = 0
        self._over = False  # what the worker gave has come to its end
        self._ended = False
        self._lost = False
        self._workers: Workers | None = None
        self._producer = -1

    def use(self, workers: Workers) -> None:
        """Have the iterable live in one of these processes."""
        self._workers = workers
        calls = ItemCalls(self._items, self._by_batch, len(self._declared.outputs))
        self._producer = workers.add(calls, stateful=True)

    @property
    def ready(self) -> bool:
        """Whether there is something to give, or nothing was asked for yet."""
        if self._workers is None or self._left or self._over or self._lost or not self._asked:
            return True
        return self._workers.ready(self._asked[0])

    def wait(self, source: Source | None) -> None:
        """Wait for a moment."""
        assert self._workers is not None
        self._workers.wait()

    @property
    def position(self) -> Any:
        if self._items.is_sequence and self._taken:  # a sequence that begins again quietly
            return (self._taken - 1) % max(1, len(self._items.source)) + 1
        return self._taken

    def pull(self, count: int, epoch: int) -> tuple[Column, ...]:
        if self._lost:
            raise StateError(
                "the process that went through the source of `external_source` has ended, and its place is lost. "
                "`pipe.reset()` begins the next epoch; a sequence goes on by itself"
            )
        if self._ended:
            raise StopIteration
        wanted = 1 if self._by_batch else count
        while len(self._left) < wanted and not self._over:
            self._receive(wanted)
        self._ended = not self._left
        if self._ended:
            raise StopIteration
        taken = [self._left.popleft() for _ in range(min(wanted, len(self._left)))]
        self._taken += len(taken)
        return self._batch(taken[0], count) if self._by_batch else self._rows(taken)

    def _receive(self, wanted: int) -> None:
        assert self._workers is not None
        self._look_ahead(wanted)
        try:
            rows, self._over = self._workers.result(self._asked[0])
        except StateError as error:
            if error.__cause__ is None:  # closed; else it is the user's, from the worker
                raise
            self._fail(wanted, died=False)
            raise
        except Exception as error:
            self._fail(wanted, died=getattr(error, "ends_process", False))
            raise
        self._left.extend(rows)
        self._asked.popleft()
        if self._over:
            self._drop()
        else:
            self._look_ahead(wanted)

    def _look_ahead(self, wanted: int) -> None:
        assert self._workers is not None
        while len(self._asked) <= self._depth:
            self._asked.append(self._workers.submit(self._producer, ("take", wanted)))

    def _fail(self, wanted: int, *, died: bool) -> None:
        """The first request has failed."""
        self._asked.popleft()
        if not died:
            return
        self._drop()  # they failed as well
        if self._items.is_sequence:
            self.seek(min(self.position + len(self._left) + wanted, len(self._items.source)))
        else:
            self._lost = True

    def _drop(self) -> None:
        assert self._workers is not None
        while self._asked:
            self._workers.drop(self._asked.popleft())

    def _move(self, request: tuple[str, int]) -> None:
        """Tell the worker to go somewhere else."""
        self._drop()
        self._left.clear()
        self._taken, self._over, self._ended, self._lost = request[1], False, False, False
        assert self._workers is not None
        self._workers.drop(self._workers.submit(self._producer, request))

    def reset(self) -> None:
        if self._items.cycle == "no" or (self._taken == 0 and not self._ended and not self._lost):
            return
        self._move(("reset", 0))

    def require_resumable(self, source: Source | None) -> None:
        if not self._items.is_sequence:
            super().require_resumable(source)

    def seek(self, position: Any) -> None:
        if not self._items.is_sequence:
            super().seek(position)
        self._move(("seek", int(position)))
