# SPDX-License-Identifier: Apache-2.0
"""The DataLoader's side: workers send recipes, threads of the main process make the pixels, users get plain tensors.

A worker process runs the data set as ever. What it would put into the result queue as a tensor goes as recipes, and the
files' bytes in shared memory. In the main process a :class:`_Relay` stands where the result queue stood: it takes
batches as they come and gives them to native threads, a few at a time so that memory stays small, and the iterator's
``_next_data`` waits for the batch whose turn it is.
"""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import _utils
from torch.utils.data.dataloader import DataLoader

from ...native import _native
from . import counts, recipe, retry
from .tensor import LazyRow, LazyTensor, Making, join, real

_AHEAD = 2  # batches that are made or ready before they are asked for
_LOOK_S = 0.2  # how often a waiting thread looks whether it should end
_MOST_AGAIN = 64  # damaged files in one batch, after which something else is wrong


# ---- in a worker process, or in the main one with 0 workers ----


def fetch(original: Callable[[Any, Any], Any], fetcher: Any, index: Any) -> Any:
    """Fetch a batch; one with a damaged file that is found while it is collated, again."""
    origin = retry.begin(index)
    try:
        for _ in range(_MOST_AGAIN):
            try:
                return _shared(original(fetcher, index))
            except retry.Damaged:
                retry.go_back(origin)
        return original(fetcher, index)
    finally:
        retry.end()


def fetch_stream(original: Callable[[Any, Any], Any], fetcher: Any, index: Any) -> Any:
    """Fetch a batch of a stream, which cannot be fetched again."""
    return _shared(original(fetcher, index))


def _shared(data: Any) -> Any:
    """In a worker: put the files of a batch into one piece of shared memory."""
    if torch.utils.data.get_worker_info() is None:
        return data
    nodes = [row.node for lazy in find(data) for row in lazy._rows]
    own = list({id(n.source): n.source for n in nodes if not n.source.shared}.values())
    if own:
        size = sum(source.data.size for source in own)
        memory = torch.empty(0, dtype=torch.uint8).set_(torch.UntypedStorage._new_shared(size))  # type: ignore[no-untyped-call]
        array = memory.numpy()
        first = 0
        for source in own:
            array[first : first + source.data.size] = source.data
            source.share(memory, first)
            first += source.data.size
    return data


def collate(original: Callable[..., Any], batch: Any, *, collate_fn_map: Any = None) -> Any:
    """``default_collate`` of tensors of which one or more may be lazy: a lazy batch."""
    joined = join(batch)
    return original(batch, collate_fn_map=collate_fn_map) if joined is None else joined


def reduce_lazy(tensor: LazyTensor) -> tuple[Any, ...]:
    """How a lazy tensor travels to another process: as recipes."""
    if tensor._real is not None:
        return ForkingPickler._extra_reducers[torch.Tensor](tensor._real)  # type: ignore[attr-defined, no-any-return]
    return _rebuild, (_portable(tensor._rows), tuple(tensor.shape[:-3]))


def _portable(rows: list[LazyRow]) -> list[LazyRow]:
    """Values of patches as arrays: each tensor would travel in a shared memory file of its own."""
    if not any(row.patches for row in rows):
        return rows
    packed = []
    for row in rows:
        patches = tuple((i, _packed(v) if isinstance(v, torch.Tensor) else v) for i, v in row.patches)
        packed.append(row._replace(patches=patches))
    return packed


class _Packed(NamedTuple):
    data: Any
    dtype: torch.dtype
    shape: tuple[int, ...]


def _packed(value: torch.Tensor) -> _Packed:
    return _Packed(value.reshape(-1).view(torch.uint8).numpy(), value.dtype, tuple(value.shape))


def _rebuild(rows: list[LazyRow], lead: tuple[int, ...]) -> LazyTensor:
    for at, row in enumerate(rows):
        if row.patches:
            patches = tuple((i, _unpacked(v) if isinstance(v, _Packed) else v) for i, v in row.patches)
            rows[at] = row._replace(patches=patches)
    return LazyTensor(rows, lead)


def _unpacked(value: _Packed) -> torch.Tensor:
    return torch.from_numpy(value.data.copy()).view(value.dtype).view(value.shape)


class Activation:
    """A worker's first call: switches Stoker on there, whatever the start method, then does the user's own."""

    def __init__(self, user: Any, memory: Any) -> None:
        self._user = user
        self._memory = memory

    def __call__(self, worker: int) -> None:
        from .switch import enable_here

        enable_here()
        counts.use(self._memory.numpy()[worker])
        if self._user is not None:
            self._user(worker)


# ---- in the main process ----


class _Batch:
    """A batch between the result queue and its delivery."""

    def __init__(self, lazies: list[LazyTensor]) -> None:
        self.lazies = lazies
        self.making: Making | None = None


class Maker:
    """Makes the batches of one iterator: on native threads if it has workers, else on the caller's."""

    def __init__(self, threads: int) -> None:
        self._crew = _native.recipe.Crew(threads) if threads else None
        self._blocks = _native.recipe.blocks(_AHEAD + 2)
        self._lock = threading.Lock()
        self._waiting: list[_Batch] = []
        self._started: list[_Batch] = []

    def arrive(self, data: Any) -> None:
        """A batch has come; it is begun when few enough are under way."""
        lazies = find(data)
        if not lazies or self._crew is None:
            return
        with self._lock:
            self._waiting.append(_Batch(lazies))
            self._start()

    def _start(self) -> None:
        while self._waiting and len(self._started) < _AHEAD:
            self._begin(self._waiting.pop(0))

    def _begin(self, batch: _Batch) -> None:
        assert self._crew is not None
        batch.making = Making(batch.lazies, self._blocks)
        self._started.append(batch)
        self._crew.submit(batch.making.order)

    def finish(self, data: Any) -> None:
        """Wait until all lazy tensors of a batch are real.

        Raises:
            Damaged: a file of it cannot be decoded.
        """
        lazies = find(data)
        if not lazies:
            return
        if self._crew is None:
            making = Making(lazies, self._blocks)
            _native.recipe.make(making.order)
        else:
            making = self._made(lazies, self._crew)
        making.finish()

    def _made(self, lazies: list[LazyTensor], crew: Any) -> Making:
        with self._lock:
            known = [b for b in self._started + self._waiting if b.lazies[0] is lazies[0]]
            batch = known[0] if known else _Batch(lazies)
            if batch in self._waiting:
                self._waiting.remove(batch)
            if batch.making is None:
                self._begin(batch)
        assert batch.making is not None
        crew.hasten(batch.making.order)
        while not crew.wait(batch.making.order, _LOOK_S):
            pass
        with self._lock:  # only now: while threads write into its memory, somebody must hold it
            self._started.remove(batch)
            self._start()
        return batch.making

    def close(self) -> None:
        """End the threads."""
        if self._crew is not None:
            self._crew.close()

    def __del__(self) -> None:
        self.close()


class _Relay:
    """Stands where a loader's result queue stood: a thread takes what comes, so that its pixels are begun."""

    def __init__(self, source: Any, maker: Maker) -> None:
        self._ready: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue()
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=_Relay._run, args=(source, maker, self._ready, self._stop), name="stoker-relay", daemon=True
        )
        self._thread.start()

    @staticmethod
    def _run(source: Any, maker: Maker, ready: Any, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                item = source.get(timeout=_LOOK_S)
                maker.arrive(item)
            except queue.Empty:
                continue
            except Exception as error:  # noqa: BLE001 - it is raised where the queue is read, as it would have been
                if stop.is_set():
                    return
                ready.put((None, error))
                time.sleep(_LOOK_S)
                continue
            ready.put((item, None))

    def get(self, timeout: float | None = None) -> Any:
        """As the queue's."""
        item, error = self._ready.get(timeout=timeout)
        if error is not None:
            raise error
        return item

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()


class _Iterator:
    """What an iterator over a DataLoader does more: its batches are plain tensors when they are handed out."""

    _stoker_maker: Maker
    _stoker_relay: _Relay | None = None
    _stoker_counts: Any = None  # of the workers, in shared memory

    def _next_data(self) -> Any:
        data = super()._next_data()  # type: ignore[misc]
        data = delivered(data, self._stoker_maker, self)
        counts.say_once()
        return data

    def _shutdown_workers(self) -> None:
        if self._stoker_relay is not None:
            self._stoker_relay.close()
        super()._shutdown_workers()  # type: ignore[misc]
        self._stoker_maker.close()
        counts.retire(self._stoker_counts)


_classes: dict[type, type] = {}


def watch(iterator: Any) -> Any:
    """Let an iterator of a DataLoader hand out plain tensors, made ahead."""
    kind = type(iterator)
    if issubclass(kind, _Iterator) or not hasattr(iterator, "_next_data"):
        return iterator
    if kind not in _classes:
        _classes[kind] = type(kind.__name__, (_Iterator, kind), {"__module__": kind.__module__})
    workers = getattr(iterator, "_num_workers", 0)
    iterator._stoker_maker = Maker(workers)
    if workers and getattr(iterator, "_data_queue", None) is getattr(iterator, "_worker_result_queue", _classes):
        iterator._stoker_relay = _Relay(iterator._data_queue, iterator._stoker_maker)
        iterator._data_queue = iterator._stoker_relay
    iterator.__class__ = _classes[kind]
    return iterator


def get_iterator(original: Callable[[Any], Any], loader: DataLoader[Any]) -> Any:
    """``DataLoader._get_iterator``: its workers have Stoker switched on, its batches are plain tensors."""
    workers = loader.num_workers
    if not workers or isinstance(loader.worker_init_fn, Activation):  # a subclass that calls its base
        return watch(original(loader))
    memory = counts.watch(_shared_zeros(workers, len(counts.NAMES)))
    with _activated(loader, memory):
        iterator = watch(original(loader))
        iterator._stoker_counts = memory
    return iterator


@contextlib.contextmanager
def _activated(loader: DataLoader[Any], memory: torch.Tensor) -> Iterator[None]:
    user = loader.worker_init_fn
    loader.worker_init_fn = Activation(user, memory)
    try:
        yield
    finally:
        loader.worker_init_fn = user


def _shared_zeros(rows: int, columns: int) -> torch.Tensor:
    zeros: torch.Tensor = torch.zeros(rows, columns, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]
    return zeros


def delivered(data: Any, maker: Maker, iterator: Any) -> Any:
    """A batch with plain tensors; if one of its files is damaged, the batch as it is without Stoker."""
    for _ in range(_MOST_AGAIN):
        try:
            maker.finish(data)
            break
        except retry.Damaged:
            data = _again(data, iterator)
    return plain(data)


def _again(data: Any, iterator: Any) -> Any:
    """Fetch a batch anew, in this process, from the random state of its start."""
    origin = next(row.node.source.origin for lazy in find(data) for row in lazy._rows if row.node.op != recipe.RAW)
    if origin is None or iterator._dataset_kind != 0:
        raise  # what the caller is handling: a stream cannot be read again
    counts.add(counts.RETRIED)
    fetcher = _utils.fetch._MapDatasetFetcher(
        iterator._dataset, iterator._auto_collation, iterator._collate_fn, iterator._drop_last
    )
    after = retry.states() if iterator._num_workers else None
    retry.go_back(origin)
    try:
        return fetcher.fetch(origin.index)  # type: ignore[no-untyped-call]
    except Exception:  # as a worker does
        if not iterator._num_workers:
            raise
        ExceptionWrapper(where="in DataLoader worker process").reraise()  # type: ignore[no-untyped-call]
    finally:
        if after is not None:
            retry.go_back(after)


# ---- batches of any structure ----


def find(data: Any) -> list[LazyTensor]:
    """All lazy tensors in a batch."""
    if isinstance(data, LazyTensor):
        return [data] if data._real is None else []
    if isinstance(data, dict):
        return [x for value in data.values() for x in find(value)]
    if isinstance(data, (list, tuple)):
        return [x for value in data for x in find(value)]
    return []


def plain(data: Any) -> Any:
    """The batch with real tensors for its lazy ones; containers keep their types."""
    if isinstance(data, LazyTensor):
        return real(data)
    if isinstance(data, dict):
        for key, value in data.items():
            made = plain(value)
            if made is not value:
                data[key] = made
        return data
    if isinstance(data, list):
        data[:] = [plain(value) for value in data]
        return data
    if isinstance(data, tuple):
        made = [plain(value) for value in data]
        if all(a is b for a, b in zip(made, data, strict=True)):
            return data
        return type(data)(*made) if hasattr(data, "_fields") else type(data)(made)
    return data
