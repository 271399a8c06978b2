# SPDX-License-Identifier: Apache-2.0
"""Feeders: take data from the user's sources batch by batch, check them and convert them."""

from __future__ import annotations

import inspect
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..contract.batch import Batch
from ..contract.errors import ArgumentError, DataError, SourceLine, StateError, message
from ..contract.feed import Feeder, is_capsule, to_array
from ..contract.operator import Spec
from ..contract.text import brief
from ..contract.types import DType
from ..contract.whole_number import as_whole_number
from ._declared import Declared
from ._gpu_arrays import as_gpu_array, is_on_gpu

Column = Any  # an array with the rows on its first axis, or a list with an array per row
_SCALAR = (bool, int, float)
_ARRAY_PROTOCOLS = ("__dlpack__", "__cuda_array_interface__", "__array_interface__")


# ---- feeders ----


class CheckedFeeder(Feeder):
    """Base class of feeders that check each batch against the declared types.

    ``position`` is the position in the source.
    """

    def __init__(self, declared: Declared, *, copies: bool) -> None:
        self._declared = declared
        self._copies = copies
        self._gave = False

    @property
    def specs(self) -> tuple[Spec, ...]:
        found = self._declared.specs()
        assert found is not None, "before the first batch"
        return found

    def require_resumable(self, source: SourceLine | None) -> None:
        raise StateError(
            message(
                "external_source", "expected a source that can be resumed, got one that only runs forward",
                source=source, hint="Use a sequence, a callback that takes the number of the batch, or with "
                "batch=False a callback that takes a types.SampleInfo",
            )
        )  # fmt: skip

    def feed(self, data: Any, limit: int, layout: str | None) -> None:
        raise StateError("expected a source without `source=` to feed, got one that has its own data")

    # ---- conversion of a source's data ----

    def _batch(self, data: Any, limit: int) -> tuple[Column, ...]:
        """Convert a batch to columns."""
        count = len(self._declared.outputs)
        columns = split(data, count, "batches")
        for output, column in enumerate(columns):
            self._declared.take_layout(output, column)
        loaded = tuple(self._column(i, c) for i, c in enumerate(columns))
        rows = len(loaded[0])
        if rows == 0:
            raise DataError("expected at least one row, got an empty batch. Raise StopIteration to end an epoch")
        if rows > limit:
            raise DataError(f"expected at most {limit} rows (the batch_size, or what another source gave), got {rows}")
        for column in loaded[1:]:
            if len(column) != rows:
                raise DataError(f"expected outputs with one number of rows, got {rows} and {len(column)}")
        self._gave = True
        return loaded

    def _rows(self, samples: Sequence[Any]) -> tuple[Column, ...]:
        """Convert single rows to columns."""
        count = len(self._declared.outputs)
        parts = [split(s, count, "values") for s in samples]
        for output in range(count if parts else 0):
            self._declared.take_layout(output, parts[0][output])
        self._gave = True
        return tuple([self._row(i, p[i], r) for r, p in enumerate(parts)] for i in range(count))

    def _column(self, output: int, data: Any) -> Column:
        data = as_column(data)
        if isinstance(data, list):
            if self._declared.has(output, data):
                return [x.copy() for x in data] if self._copies else data
            return [self._row(output, x, r) for r, x in enumerate(data)]
        try:
            array = self._own(data)
        except (TypeError, ValueError, BufferError) as error:
            raise DataError(str(error)) from error
        self._declared.check(output, array, 1, "")
        return array

    def _row(self, output: int, x: Any, row: int) -> Any:
        dtype = self._declared.outputs[output][0]
        where = f" in row {row}"
        try:
            array = _scalar(x, dtype) if isinstance(x, _SCALAR) and dtype is not None else self._own(x)
        except (TypeError, ValueError, OverflowError, BufferError) as error:
            raise DataError(f"{error}{where}") from error
        self._declared.check(output, array, 0, where)
        return array

    def _own(self, x: Any) -> Any:
        """Return an array that does not change while its batch is in flight."""
        if type(x) is np.ndarray:
            array = to_array(x)
            return array.copy() if self._copies and _shared(array, x) else array
        if is_on_gpu(x):
            return as_gpu_array(x, self.device, copies=self._copies)
        array = to_array(x)
        fresh = isinstance(x, (bytes, list, tuple, *_SCALAR)) or (isinstance(x, np.ndarray) and not _shared(array, x))
        return array if fresh or not self._copies else array.copy()


def split(data: Any, count: int, what: str) -> Sequence[Any]:
    """Split a source's result into outputs."""
    if count == 1:
        return data if isinstance(data, tuple) and len(data) == 1 else (data,)
    if not isinstance(data, (tuple, list)) or len(data) != count:
        got = f"{len(data)}" if isinstance(data, (tuple, list)) else f"one {type(data).__name__}"
        raise DataError(f"expected a tuple of {count} {what}, one per output, got {got}")
    return data


def as_column(data: Any) -> Any:
    """Convert a batch of one output: a list with a value per row, or an array with the rows on its first axis."""
    rows = getattr(data, "batch", None)  # of a list of tensors
    data = rows if isinstance(rows, Batch) else data
    if isinstance(data, Batch):
        if not data.is_dense:
            return list(data)
        return data.whole if data.device == "gpu" else data.as_array()
    if isinstance(data, (list, tuple)):
        return list(data)
    if is_capsule(data):
        return to_array(data)
    known = isinstance(data, np.ndarray) or any(hasattr(data, name) for name in _ARRAY_PROTOCOLS)
    if not known or getattr(data, "ndim", 1) == 0:
        raise DataError(
            f"expected a batch (a list with a value per row, or an array with the rows on its first axis), got "
            f"{type(data).__name__}. Pass batch=False for a source of single rows"
        )
    return data


def _scalar(x: Any, dtype: DType) -> Any:
    """Convert a Python number to the declared type if that type holds it. A float is rounded to another float type."""
    if dtype == DType.BFLOAT16:  # NumPy holds bfloat16 as bits, so its conversion would be wrong
        raise ValueError(
            f"expected a tensor of bfloat16 or its bits as uint16 (or FLOAT, and a cast), got number {brief(x)}"
        )
    with np.errstate(over="ignore"):
        array = np.asarray(x, dtype.numpy)
    if (np.isinf(array) and np.isfinite(x)) if dtype.is_float else array != x:
        raise ValueError(f"expected a number that {dtype} holds, got {brief(x)}")
    return array


def _shared(a: Any, b: Any) -> bool:
    return a is b or bool(np.may_share_memory(a, b))


def is_single_use(source: Any) -> bool:
    """Return whether a source is an iterator that cannot begin again.

    An iterator with an ``__iter__`` of its own class, written in Python, begins again there.
    """
    return isinstance(source, Iterator) and not inspect.isfunction(getattr(type(source), "__iter__", None))


class Items:
    """Items of an iterable or a generator function, with its ends and restarts.

    Args:
        source: the iterable, or the generator function.
        cycle: behaviour at the end: "quiet" begins again, "no" has ended for good, None and "raise" wait for a reset.
    """

    def __init__(self, source: Any, cycle: str | None) -> None:
        self.source = source
        self.cycle = cycle
        self.once = is_single_use(source)
        self._iterator: Iterator[Any] | None = None
        self.taken = 0  # items taken since the beginning of the data
        self.ended = False
        self._spent = False  # ended for good, and another epoch was requested

    def take(self) -> Any:
        """Return the next item; StopIteration at the end."""
        if self._spent:
            raise StateError(
                "the source of `external_source` is an iterator, which has ended and cannot begin again. Pass the "
                "iterable or the generator function itself"
            )
        if self.ended:
            raise StopIteration
        if self._iterator is None:
            self._iterator = self.source() if inspect.isgeneratorfunction(self.source) else iter(self.source)
        try:
            item = next(self._iterator)
        except StopIteration:
            if self.taken == 0:
                self.ended = True
                raise DataError("expected data from the source, got none: it ended immediately") from None
            if self.cycle != "quiet":
                self.ended = True
                raise
            self._begin()
            return self.take()
        self.taken += 1
        return item

    def take_rows(self, count: int) -> list[Any]:
        """Return at most ``count`` items; StopIteration if there is none."""
        rows: list[Any] = []
        while len(rows) < count:
            try:
                rows.append(self.take())
            except StopIteration:
                if not rows:
                    raise
                break
        return rows

    def _begin(self) -> None:
        self._iterator, self.taken, self.ended = None, 0, False

    def reset(self) -> None:
        """Begin an epoch."""
        if self.cycle == "no" or (self.taken == 0 and not self.ended):
            return
        if self.once:
            self._spent = self.ended
        else:
            self._begin()

    @property
    def is_sequence(self) -> bool:
        """Return whether the source can continue from any position."""
        return hasattr(self.source, "__getitem__") and hasattr(self.source, "__len__")

    def seek(self, taken: int) -> None:
        """Continue after ``taken`` items of a sequence."""
        self._begin()
        self.taken = taken
        self._iterator = (self.source[i] for i in range(taken, len(self.source)))


class IterableFeeder(CheckedFeeder):
    """Feeder that reads an iterable or a generator function."""

    def __init__(self, declared: Declared, items: Items, *, by_batch: bool, copies: bool) -> None:
        super().__init__(declared, copies=copies)
        self._items = items
        self._by_batch = by_batch

    @property
    def position(self) -> Any:
        return self._items.taken

    def pull(self, count: int, epoch: int) -> tuple[Column, ...]:
        if self._by_batch:
            return self._batch(self._items.take(), count)
        return self._rows(self._items.take_rows(count))

    def reset(self) -> None:
        self._items.reset()

    def require_resumable(self, source: SourceLine | None) -> None:
        if not self._items.is_sequence:
            super().require_resumable(source)

    def seek(self, position: Any) -> None:
        if not self._items.is_sequence:
            super().seek(position)
        (taken,) = _counts([position], 1)
        self._items.seek(taken)


class CallbackFeeder(CheckedFeeder):
    """Feeder that calls a function.

    Args:
        make_argument: returns the function's argument for (row in the epoch, row in the batch, batch, epoch); None:
            the function takes no argument.
    """

    def __init__(self, declared: Declared, function: Callable[..., Any], make_argument: Callable[..., Any] | None, *,
                 by_batch: bool, copies: bool) -> None:  # fmt: skip
        super().__init__(declared, copies=copies)
        self._function = function
        self._make_argument = make_argument
        self._by_batch = by_batch
        self._sample = self._iteration = 0
        self._ended = False

    @property
    def position(self) -> Any:
        return [self._sample, self._iteration]

    def pull(self, count: int, epoch: int) -> tuple[Column, ...]:
        if self._ended:
            raise StopIteration
        sample, iteration = self._sample, self._iteration
        # Counted before the call: a failed call is not repeated.
        self._sample, self._iteration = sample + count, iteration + 1
        results: list[Any] = []
        try:
            for i in range(1 if self._by_batch else count):
                arguments = (self._make_argument(sample + i, i, iteration, epoch),) if self._make_argument else ()
                results.append(self._function(*arguments))
        except StopIteration:
            self._ended = True
            if not results and not self._gave:
                raise DataError("expected data from the source, got none: it ended immediately") from None
            if not results:
                raise
        return self._batch(results[0], count) if self._by_batch else self._rows(results)

    def reset(self) -> None:
        self._sample = self._iteration = 0
        self._ended = False

    def require_resumable(self, source: SourceLine | None) -> None:
        if self._make_argument is None:
            super().require_resumable(source)

    def seek(self, position: Any) -> None:
        if self._make_argument is None:
            super().seek(position)
        self._sample, self._iteration = _counts(position, 2)
        self._ended = False


def _counts(position: Any, count: int) -> list[int]:
    """Return the numbers of a saved position."""
    numbers = [as_whole_number(x) for x in position] if isinstance(position, (list, tuple)) else []
    found = [n for n in numbers if n is not None and 0 <= n <= 1 << 62]
    if len(numbers) != count or len(found) != count:
        raise StateError(f"expected the position of a source as `get_state()` gave it, got {brief(position)}")
    return found


class ManualFeeder(CheckedFeeder):
    """Feeder for batches from ``pipe.feed_input``.

    Attributes:
        subject: name of the operator in messages.
    """

    fed_by_hand = True
    subject = "external_source"

    def __init__(self, declared: Declared, name: str, *, repeats: bool, waits: bool, copies: bool) -> None:
        super().__init__(declared, copies=copies)
        self._name = name
        self._repeats = repeats
        self._waits = waits
        self._queue: deque[tuple[Column, ...]] = deque()
        self._last: tuple[Column, ...] | None = None
        self._fed = threading.Condition()
        self._checking = threading.RLock()  # the first batch declares types for the others

    @property
    def ready(self) -> bool:
        return bool(self._queue) or (self._repeats and self._last is not None)

    def wait(self, source: SourceLine | None) -> None:
        if not self._waits:
            raise StateError(
                message(
                    self.subject, "expected data, got none", source=source,
                    hint=f"Call `pipe.feed_input({self._name!r}, batch)` before every run, or give it a source",
                )
            )  # fmt: skip
        with self._fed:
            self._fed.wait_for(lambda: self.ready, timeout=0.1)

    def feed(self, data: Any, limit: int, layout: str | None) -> None:
        if layout is not None:
            if not isinstance(layout, str):
                raise ArgumentError(f"expected the names of the axes as `layout`, got {brief(layout)}")
            declared = self._declared.outputs[0]
            with self._checking:
                if layout != declared[2] and (declared[2] or self._gave):
                    raise ArgumentError(f"expected layout {declared[2]!r} as declared or fed first, got {layout!r}")
                declared[2] = layout
        with self._checking:
            batch = self._batch(data, limit)
        with self._fed:
            self._queue.append(batch)
            self._fed.notify_all()

    def discard(self) -> None:
        with self._fed:
            self._queue.clear()
            self._last = None

    def convert(self, data: Any) -> tuple[Column, ...]:
        return self._batch(data, len(data))

    def pull(self, count: int, epoch: int) -> tuple[Column, ...]:
        if self._queue:
            self._last = self._queue.popleft()
        assert self._last is not None
        return self._last
