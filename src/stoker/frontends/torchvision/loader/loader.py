# SPDX-License-Identifier: Apache-2.0
"""The DataLoader's side: workers send recipes, threads of the main process decode, users get plain tensors.

A worker process runs the data set unchanged. It puts recipes instead of tensors into the result queue, and the files'
bytes into shared memory (`transport/segment.py`). The main process prefetches batches (`scheduler.py`), and the
iterator's ``_next_data`` waits for the next one.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import os
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import _utils, default_convert
from torch.utils.data.dataloader import DataLoader, default_collate

from .. import counts, recording
from ..collation import batches, padded, plain
from ..collation.batched_calls import batch_calls
from ..collation.deferred import Collation
from ..gpu import grouping
from ..gpu.destination import Destination, pin_batch
from ..materialize import retry
from ..materialize.materialization import shrink
from ..tensors import images, planes
from ..tensors.lazy_base import become_plain, set_class
from ..tensors.tensor import LazyTensor, is_lazy, stack_lazy
from ..transport import descriptors, file_refs, segment
from . import delivery
from .activity import activity_of_fetcher
from .scheduler import BatchScheduler, Relay

_SMALL = 4096  # elements of a tensor that is sent inside a message
_MAX_RETRIES = 64  # damaged files of one batch; if there are more, the error has another cause
_LOG_PERIOD_S = 1.0
_KEEP_FILES_NOTE = "Files are read when their batch is materialized: keep them until the batch is delivered."


# ---- in a worker process, or in the main process with 0 workers ----


def fetch(original: Callable[[Any, Any], Any], fetcher: Any, index: Any) -> Any:
    """Fetch a batch, and make plain what the data set keeps of it."""
    with recording.tracking():
        result = _fetch(original, fetcher, index)
        _end_fetch(fetcher, result)
    return result


def _end_fetch(fetcher: Any, data: Any) -> None:
    """Make lazy objects plain that outlive their fetch, and note whether there are any."""
    _thread.has_recorded = True
    created = recording.take_created()
    activity_of_fetcher(fetcher).end_fetch(has_lazy=bool(created) or batches.has_lazy(data))
    _make_kept_plain(created, data)


_created_before: deque[list[Any]] = deque()  # in a worker: lazy objects of earlier fetches
_KEPT_FETCHES = 2  # a worker's objects that are alive after two more fetches are kept by its data set


def _make_kept_plain(created: list[Any], data: Any) -> None:
    """Make lazy objects of ``created`` plain that outlive their fetch, except for those that ``data`` contains.

    A data set that keeps them uses them again, and a plain object is computed once. A worker waits for two more
    fetches: streams and shuffle buffers hold objects that they are about to use. In the main process other code could
    see the objects.
    """
    if recording.is_worker():
        _created_before.append(created)
        created = _created_before.popleft() if len(_created_before) > _KEPT_FETCHES else []
    if not created:
        return
    delivered = {id(x) for x in (*batches.iterate_lazy(data), *batches.find_lazy(data))}
    for reference in created:
        x = reference()
        if x is not None and id(x) not in delivered:
            with contextlib.suppress(Exception):  # the data set sees the error when it uses the object
                plain.become_plain(x)


def _fetch(original: Callable[[Any, Any], Any], fetcher: Any, index: Any) -> Any:
    """Fetch a batch. Fetch it again if a file turns out to be damaged or changed before the end of its collation."""
    origin = retry.begin_batch(index)
    segment.begin_batch()
    file_refs.begin_batch()
    try:
        for _ in range(_MAX_RETRIES):
            try:
                result = _fetch_once(original, fetcher, index)
                if not file_refs.has_stale_ref():
                    return result
            except Exception as error:
                if not file_refs.has_stale_ref() and not isinstance(error, retry.Damaged):
                    raise
            file_refs.begin_batch()
            retry.restore_random_states(origin)
        return _fetch_once(original, fetcher, index)
    finally:
        file_refs.end_batch()
        segment.end_batch()
        retry.end_batch()


def fetch_stream(original: Callable[[Any, Any], Any], fetcher: Any, index: Any) -> Any:
    """Fetch a batch of a stream, which cannot be fetched again."""
    segment.begin_batch()
    try:
        with recording.tracking():
            result = _fetch_once(original, fetcher, index)
            _end_fetch(fetcher, result)
        return result
    finally:
        segment.end_batch()


def _fetch_once(original: Callable[[Any, Any], Any], fetcher: Any, index: Any) -> Any:
    """Return a batch; the calls of a script's own collation are recorded."""
    if not (_delivers_lazy_batches or _thread.delivers_lazy_batches):
        # an iterator of another library: its code receives the batch as it leaves this function
        return batches.to_plain(original(fetcher, index))
    if fetcher.collate_fn in (default_collate, default_convert):
        return _prepare_to_send(original(fetcher, index))
    collation = Collation(fetcher.collate_fn, batches.find_images, is_on_gpu=is_on_gpu())
    with _replaced(fetcher, "collate_fn", collation):
        return _prepare_to_send(original(fetcher, index))


def _prepare_to_send(data: Any) -> Any:
    """Return a batch in the form in which a worker sends it."""
    file_refs.copy_moved_files()
    data = batches.compute_points(data)
    delivered = {id(x) for x in batches.iterate_lazy(data)}
    for program in batches.find_programs(data):
        padded.simplify(program)
        if is_on_gpu():  # a GPU materializes only equal images together
            program.stack_equal_leaves(delivered)
            batch_calls(program)
        if not program.leaves:  # a collation without images
            program.run()
    if torch.utils.data.get_worker_info() is not None:
        lazies = batches.find_lazy(data)
        shrink(lazies)
        if _sends_groups:
            grouping.attach_groups(lazies)
    return data


def is_on_gpu() -> bool:
    """Return whether a GPU materializes the batches that this process fetches."""
    return _sends_groups or delivery.is_on_gpu()


class _ThreadState(threading.local):
    delivers_lazy_batches = False  # the iterator that fetches in this thread materializes its batches
    has_recorded = False  # a fetch was recorded since the thread's iterator was asked for a batch


_thread = _ThreadState()
_delivers_lazy_batches = False  # set in a worker, whose batches are materialized in the main process
_sends_groups = False  # set in a worker: batches are delivered on a GPU


def collate(original: Callable[..., Any], batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Wrap ``default_collate`` of tensors: if one of them is lazy, the batch is lazy."""
    joined: Any = stack_lazy(batch)
    joined = planes.stack_planes(batch) if joined is None else joined
    return original(batch, collate_fn_map=collate_fn_map) if joined is None else joined


def reduce_lazy(tensor: LazyTensor) -> tuple[Any, ...]:
    """Return the pickled form of a lazy tensor: recipes."""
    reduced = _reduce(tensor)
    return reduced if type(tensor) is LazyTensor else (_unpickle_image, reduced)


def reduce_planes(x: Any) -> tuple[Any, ...]:
    """Return the pickled form of planes: recipes, or the plain tensor."""
    if planes.are_lazy(x):
        return planes.with_state, planes.state_of(x)
    return _reduce_plain(become_plain(x))


def reduce_points(x: Any) -> tuple[Any, ...]:
    """Return the pickled form of key points in an object of unknown structure: the plain tensor."""
    return _reduce_plain(become_plain(x))


def _reduce_plain(values: torch.Tensor) -> tuple[Any, ...]:
    reduce = ForkingPickler._extra_reducers.get(type(values))  # type: ignore[attr-defined]
    return values.__reduce_ex__(2) if reduce is None else reduce(values)  # type: ignore[no-any-return, no-untyped-call]


def _unpickle_image(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Return a tensor of torchvision's image class, lazy or plain."""
    x, kind = function(*args), images.lazy_image_class()
    if not is_lazy(x):
        return x.as_subclass(kind.represented_class)
    set_class(x, kind)
    return x


def _reduce(tensor: LazyTensor) -> tuple[Any, ...]:
    if tensor._materialized is not None:
        return ForkingPickler._extra_reducers[torch.Tensor](tensor._materialized)  # type: ignore[attr-defined, no-any-return]
    arrived = tensor._worker_groups
    if arrived is not None and arrived.rows is tensor._rows:
        return grouping.reduce_grouped(tensor, arrived)
    return _unpickle_lazy, (tensor._rows, tensor._lead)


def _unpickle_lazy(rows: Any, lead: tuple[int, ...]) -> LazyTensor:
    return LazyTensor(rows, lead)


class _SmallTensor(NamedTuple):
    data: Any
    dtype: torch.dtype
    shape: tuple[int, ...]


def _pack_small(value: torch.Tensor) -> _SmallTensor:
    return _SmallTensor(value.reshape(-1).view(torch.uint8).numpy(), value.dtype, tuple(value.shape))


def _unpack_small(value: _SmallTensor) -> torch.Tensor:
    return torch.from_numpy(value.data.copy()).view(value.dtype).view(value.shape)


def reduce_small(original: Callable[[Any], Any], tensor: torch.Tensor) -> Any:
    """Return the pickled form of a worker's tensor: a small one (labels) travels inside the message."""
    plain = type(tensor) is torch.Tensor and tensor.layout == torch.strided and tensor.device.type == "cpu"
    if not plain or not 0 < tensor.numel() <= _SMALL or tensor.requires_grad or tensor.is_conj() or tensor.is_neg():
        return original(tensor)
    if tensor.is_shared():  # type: ignore[no-untyped-call]
        return original(tensor)
    return _unpack_small, (_pack_small(tensor.contiguous()),)


class WorkerInit:
    """Worker's init function: it enables Stoker there, with any start method, then calls the user's own function."""

    def __init__(
        self, user: Any, enable: Callable[[], None], memory: Any, senders: Sequence[descriptors.Sender], *, groups: bool
    ) -> None:
        self._user = user
        self._enable = enable
        self._groups = groups
        self._memory = memory
        self._senders = senders

    def __call__(self, worker: int) -> None:
        global _delivers_lazy_batches, _sends_groups
        self._enable()
        _delivers_lazy_batches = True
        _sends_groups = self._groups
        gc.freeze()  # inherited memory stays shared: collections do not traverse or write to it
        counts.count_into(self._memory.numpy()[worker])
        file_refs.enter_worker(self._memory[-1])
        for number, sender in enumerate(self._senders):
            if number != worker:
                sender.close()
        segment.enter_worker(self._senders[worker])
        original = ForkingPickler._extra_reducers[torch.Tensor]  # type: ignore[attr-defined]
        ForkingPickler.register(torch.Tensor, functools.partial(reduce_small, original))
        if self._user is not None:
            self._user(worker)


# ---- in the main process ----


class _Iterator:
    """Iterator over a DataLoader that returns plain tensors."""

    _stoker_new_scheduler: Callable[[], BatchScheduler]
    _stoker_relay: Relay | None = None
    _stoker_counts: Any = None  # counters of the workers, in shared memory
    _stoker_ref_flag: Any = None  # flag of the workers, in shared memory: stop sending file references
    _stoker_receivers: Sequence[descriptors.Receiver] = ()
    _stoker_pins_memory = False  # batches are pinned here instead of by a thread of the loader
    _stoker_logged_s = 0.0  # when fallbacks were last looked for

    @functools.cached_property
    def _stoker_scheduler(self) -> BatchScheduler:
        """Scheduler of the batches. It is made when the first recorded batch arrives: others do not need it."""
        return self._stoker_new_scheduler()

    def _next_data(self) -> Any:
        delivered, recorded = _thread.delivers_lazy_batches, _thread.has_recorded  # of an outer loader
        _thread.delivers_lazy_batches, _thread.has_recorded = True, getattr(self, "_num_workers", 1) > 0
        try:
            data = super()._next_data()  # type: ignore[misc]
            if _thread.has_recorded:
                data = deliver(data, self._stoker_scheduler, self)
                self._log_fallbacks()
        finally:
            _thread.delivers_lazy_batches, _thread.has_recorded = delivered, recorded
        return pin_batch(data, pins=self._stoker_pins_memory) if self._stoker_pins_memory else data

    def _log_fallbacks(self) -> None:
        """Log new fallbacks. The sums of the counters cost 0.1 ms, so plain batches pay for them once a second."""
        now = time.monotonic()
        is_plain = self._stoker_relay is not None and self._stoker_relay.is_paused
        if not is_plain or now - self._stoker_logged_s >= _LOG_PERIOD_S:
            self._stoker_logged_s = now
            counts.log_once()

    def _shutdown_workers(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if is_finalizing():  # `_close_open_iterators` has ended the threads, and modules have lost their globals
            super()._shutdown_workers()  # type: ignore[misc]
            return
        if self._stoker_relay is not None:
            self._stoker_relay.close()
        super()._shutdown_workers()  # type: ignore[misc]
        self._close_scheduler()
        descriptors.close_all(self._stoker_receivers)
        counts.retire(self._stoker_counts)
        file_refs.unregister_flag(self._stoker_ref_flag)

    def _end_threads(self) -> None:
        if self._stoker_relay is not None:
            self._stoker_relay.close()
        self._close_scheduler()

    def _close_scheduler(self) -> None:
        scheduler = vars(self).get("_stoker_scheduler")
        if scheduler is not None:
            scheduler.close()


_open_iterators: dict[int, weakref.WeakSet[Any]] = {}  # by process: a forked one has none of the threads


@atexit.register
def _close_open_iterators() -> None:
    """End the threads of iterators that a script leaves open. After this, the interpreter stops daemon threads."""
    for iterator in list(_open_iterators.get(os.getpid(), ())):
        iterator._end_threads()


_classes: dict[type, type] = {}


def wrap_iterator(iterator: Any, *, pins: bool = False, destination: Destination | None = None) -> Any:
    """Let an iterator of a DataLoader return plain tensors, prefetched; with ``pins`` in pinned memory."""
    pinned = pins or delivery.pins_host_memory()
    kind = type(iterator)
    if issubclass(kind, _Iterator) or not hasattr(iterator, "_next_data"):
        return iterator
    if kind not in _classes:
        _classes[kind] = type(kind.__name__, (_Iterator, kind), {"__module__": kind.__module__})
    workers = getattr(iterator, "_num_workers", 0)
    in_order = getattr(iterator, "_in_order", True)
    iterator._stoker_new_scheduler = functools.partial(
        BatchScheduler,
        workers,
        in_order=in_order,
        pinned=pinned and bool(workers),
        destination=destination,
        device_steps=delivery.device_steps(),
    )
    iterator._stoker_pins_memory = pins
    iterator.__class__ = _classes[kind]
    if workers and getattr(iterator, "_data_queue", None) is getattr(iterator, "_worker_result_queue", _classes):
        iterator._stoker_relay = Relay(iterator._data_queue, iterator._stoker_scheduler, batches.receive)
        iterator._data_queue = iterator._stoker_relay
    _open_iterators.setdefault(os.getpid(), weakref.WeakSet()).add(iterator)
    return iterator


def get_iterator(
    enable: Callable[[], None],
    destination: Callable[[int], Destination | None],
    original: Callable[[Any], Any],
    loader: DataLoader[Any],
) -> Any:
    """Wrap ``DataLoader._get_iterator``: enable Stoker in its workers, and return plain tensors.

    Args:
        enable: enables Stoker; a worker finds this function by its name.
        destination: returns the destination of a loader with this number of workers; None for host memory.
        original: the wrapped function.
        loader: the DataLoader.
    """
    if id(loader) in _active_loaders:  # a subclass calls its base class
        return original(loader)
    _active_loaders.add(id(loader))
    try:
        return _get_iterator(enable, destination, original, loader)
    finally:
        _active_loaders.discard(id(loader))


_active_loaders: set[int] = set()


def _get_iterator(
    enable: Callable[[], None],
    destination: Callable[[int], Destination | None],
    original: Callable[[Any], Any],
    loader: Any,
) -> Any:
    workers = loader.num_workers
    memory = _shared_zeros(workers + 1, len(counts.NAMES)) if workers else None  # one row per worker, and one for all
    receivers = [descriptors.Receiver() for _ in range(workers)]
    senders = [receiver.sender for receiver in receivers]
    start = loader.worker_init_fn
    if memory is not None:
        rows, flag = counts.register(memory[:-1]), file_refs.register_flag(memory[-1])
        start = WorkerInit(start, enable, memory, senders, groups=delivery.is_on_gpu())
    # The loader's own pinning would materialize the batch on one thread. Batches are allocated in pinned memory
    # instead.
    pins = bool(loader.pin_memory) and torch.accelerator.is_available()
    try:
        with _replaced(loader, "worker_init_fn", start):
            with _replaced(loader, "pin_memory", loader.pin_memory and not pins):
                iterator = original(loader)
            iterator = wrap_iterator(iterator, pins=pins, destination=destination(workers))
    except BaseException:
        descriptors.close_all(receivers)
        raise
    for sender in senders:  # the workers have copies
        sender.close()
    if memory is not None:
        iterator._stoker_counts, iterator._stoker_ref_flag = rows, flag
        iterator._stoker_receivers = receivers
    return iterator


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    was = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, was)


def _shared_zeros(rows: int, columns: int) -> torch.Tensor:
    zeros: torch.Tensor = torch.zeros(rows, columns, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]
    return zeros


def deliver(data: Any, scheduler: BatchScheduler, iterator: Any) -> Any:
    """Return a batch with plain tensors. If one of its files is damaged, fetch the batch again as without Stoker."""
    hidden = scheduler.take_hidden(data)
    if not hidden and not batches.has_lazy(data):
        return data
    for _ in range(_MAX_RETRIES):
        try:
            scheduler.finish(batches.find_lazy([data, hidden]), batches.find_programs([data, hidden]))
            break
        except retry.Damaged as error:
            damage = error
        # outside of `except`: errors of the data set should not show this one
        data, hidden = _fetch_again([data, hidden], iterator, damage), []
    data = batches.to_plain(data, delivery.to_device)
    for x in hidden:
        plain.become_plain(x)
    return data


def _fetch_again(data: Any, iterator: Any, damage: retry.Damaged) -> Any:
    """Fetch a batch again in this process, from its initial random state, because of ``damage``."""
    origins = (row.node.source.origin for lazy in batches.find_lazy(data) for row in lazy._rows)
    origin = next((o for o in origins if o is not None), None)
    if origin is None or iterator._dataset_kind != 0:
        raise damage  # a stream cannot be read again
    counts.add(counts.RETRIED)
    fetcher = _utils.fetch._MapDatasetFetcher(
        iterator._dataset, iterator._auto_collation, iterator._collate_fn, iterator._drop_last
    )
    after = retry.random_states() if iterator._num_workers else None
    retry.restore_random_states(origin)
    try:
        with retry.worker_info_of(origin, iterator._dataset):
            return fetcher.fetch(origin.index)  # type: ignore[no-untyped-call]
    except Exception as error:  # wrapped like a worker's error
        if isinstance(damage.__cause__, file_refs.StaleFileRef):
            error.add_note(f"Stoker has fetched this batch a second time: {damage.__cause__}. {_KEEP_FILES_NOTE}")
        if origin.worker is None:
            raise
        where = f"in DataLoader worker process {origin.worker[0]}"
        ExceptionWrapper(where=where).reraise()  # type: ignore[no-untyped-call]
    finally:
        if after is not None:
            retry.restore_random_states(after)
