# SPDX-License-Identifier: Apache-2.0
"""The DataLoader's side: workers send recipes, threads of the main process make the pixels, users get plain tensors.

A worker process runs the data set as ever. What it would put into the result queue as a tensor goes as recipes, and
the files' bytes in shared memory (`segment.py`). In the main process batches are made ahead (`maker.py`), and the
iterator's ``_next_data`` waits for the one whose turn it is.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.reduction import ForkingPickler
from typing import Any, NamedTuple

import torch
from torch._utils import ExceptionWrapper
from torch.utils.data import _utils, default_convert
from torch.utils.data.dataloader import DataLoader, default_collate

from . import batches, counts, delivery, descriptors, grouping, padded, retry, segment, told
from .later import Collation
from .maker import Maker, Relay
from .making import shrink
from .place import Place, taken
from .tensor import LazyTensor, join
from .together import make_together

_SMALL = 4096  # elements
_MOST_AGAIN = 64  # damaged files in one batch, after which something else is wrong
_KEEP = "Files are read when the images of their batch are made: keep them until the batch is delivered."


# ---- in a worker process, or in the main one with 0 workers ----


def fetch(original: Callable[[Any, Any], Any], fetcher: Any, index: Any) -> Any:
    """Fetch a batch; again, if a file is found out to be damaged, or to have gone, while it is collated or before."""
    origin = retry.begin(index)
    segment.begin()
    told.begin()
    try:
        for _ in range(_MOST_AGAIN):
            try:
                made = _fetched(original, fetcher, index)
                if not told.has_missed():
                    return made
            except Exception as error:
                if not told.has_missed() and not isinstance(error, retry.Damaged):
                    raise
            told.begin()
            retry.go_back(origin)
        return _fetched(original, fetcher, index)
    finally:
        told.end()
        segment.end()
        retry.end()


def fetch_stream(original: Callable[[Any, Any], Any], fetcher: Any, index: Any) -> Any:
    """Fetch a batch of a stream, which cannot be fetched again."""
    segment.begin()
    try:
        return _fetched(original, fetcher, index)
    finally:
        segment.end()


def _fetched(original: Callable[[Any, Any], Any], fetcher: Any, index: Any) -> Any:
    """A batch, of which a collation of the script's own has recorded what it does."""
    if fetcher.collate_fn in (default_collate, default_convert):
        return _to_travel(original(fetcher, index))
    elsewhere = _groups or delivery.is_elsewhere()
    with _replaced(fetcher, "collate_fn", Collation(fetcher.collate_fn, batches.find, elsewhere=elsewhere)):
        return _to_travel(original(fetcher, index))


def _to_travel(data: Any) -> Any:
    """In a worker: a batch as it is sent."""
    told.settle()
    delivered = {id(x) for x in batches.parts(data)}
    for program in batches.programs(data):
        padded.simplify(program)
        if _groups or delivery.is_elsewhere():  # which makes only images that are alike together
            program.gather(delivered)
            make_together(program)
        if not program.leaves:  # what a collation has made without images
            program.run()
    if torch.utils.data.get_worker_info() is not None:
        lazies = batches.find(data)
        shrink(lazies)
        if _groups:
            grouping.send(lazies)
    return data


_groups = False  # in a worker: whether batches are delivered on a GPU


def collate(original: Callable[..., Any], batch: Any, *, collate_fn_map: Any = None) -> Any:
    """``default_collate`` of tensors of which one or more may be lazy: a lazy batch."""
    joined = join(batch)
    return original(batch, collate_fn_map=collate_fn_map) if joined is None else joined


def reduce_lazy(tensor: LazyTensor) -> tuple[Any, ...]:
    """How a lazy tensor travels to another process: as recipes."""
    if tensor._real is not None:
        return ForkingPickler._extra_reducers[torch.Tensor](tensor._real)  # type: ignore[attr-defined, no-any-return]
    arrived = tensor._arrived
    if arrived is not None and arrived.rows is tensor._rows:
        return grouping.reduce(tensor, arrived)
    return _travelled, (tensor._rows, tensor._lead)


def _travelled(rows: Any, lead: tuple[int, ...]) -> LazyTensor:
    return LazyTensor(rows, lead)


class _Packed(NamedTuple):
    data: Any
    dtype: torch.dtype
    shape: tuple[int, ...]


def _packed(value: torch.Tensor) -> _Packed:
    return _Packed(value.reshape(-1).view(torch.uint8).numpy(), value.dtype, tuple(value.shape))


def _unpacked(value: _Packed) -> torch.Tensor:
    return torch.from_numpy(value.data.copy()).view(value.dtype).view(value.shape)


def reduce_small(original: Callable[[Any], Any], tensor: torch.Tensor) -> Any:
    """How a tensor leaves a worker: a small one (labels) in the message, not in a shared memory file of its own."""
    plain = type(tensor) is torch.Tensor and tensor.layout == torch.strided and tensor.device.type == "cpu"
    if not plain or not 0 < tensor.numel() <= _SMALL or tensor.requires_grad or tensor.is_conj() or tensor.is_neg():
        return original(tensor)
    if tensor.is_shared():  # type: ignore[no-untyped-call]
        return original(tensor)
    return _unpacked, (_packed(tensor.contiguous()),)


class Activation:
    """A worker's first call: switches Stoker on there, whatever the start method, then does the user's own."""

    def __init__(
        self, user: Any, enable: Callable[[], None], memory: Any, senders: Sequence[descriptors.Sender], *, groups: bool
    ) -> None:
        self._user = user
        self._enable = enable
        self._groups = groups
        self._memory = memory
        self._senders = senders

    def __call__(self, worker: int) -> None:
        global _groups
        self._enable()
        _groups = self._groups
        gc.freeze()  # what came from the parent stays shared: collections neither look at it nor write to it
        counts.use(self._memory.numpy()[worker])
        told.use(self._memory[-1])
        for number, sender in enumerate(self._senders):
            if number != worker:
                sender.close()
        segment.in_worker(self._senders[worker])
        original = ForkingPickler._extra_reducers[torch.Tensor]  # type: ignore[attr-defined]
        ForkingPickler.register(torch.Tensor, functools.partial(reduce_small, original))
        if self._user is not None:
            self._user(worker)


# ---- in the main process ----


class _Iterator:
    """What an iterator over a DataLoader does more: its batches are plain tensors when they are handed out."""

    _stoker_maker: Maker
    _stoker_relay: Relay | None = None
    _stoker_counts: Any = None  # of the workers, in shared memory
    _stoker_told: Any = None  # there too: whether they still tell of files
    _stoker_receivers: Sequence[descriptors.Receiver] = ()
    _stoker_pins = False  # whether what is delivered is pinned here, rather than by a thread of the loader's

    def _next_data(self) -> Any:
        data = super()._next_data()  # type: ignore[misc]
        data = delivered(data, self._stoker_maker, self)
        data = taken(data, pins=self._stoker_pins)
        counts.say_once()
        return data

    def _shutdown_workers(self) -> None:
        if self._stoker_relay is not None:
            self._stoker_relay.close()
        super()._shutdown_workers()  # type: ignore[misc]
        self._stoker_maker.close()
        descriptors.close(self._stoker_receivers)
        if sys.is_finalizing():  # an iterator that an error kept alive: nobody asks for counts any more
            return
        counts.retire(self._stoker_counts)
        told.retire(self._stoker_told)


_classes: dict[type, type] = {}


def watch(iterator: Any, *, pins: bool = False, place: Place | None = None) -> Any:
    """Let an iterator of a DataLoader hand out plain tensors, made ahead; with ``pins`` in pinned memory."""
    kind = type(iterator)
    if issubclass(kind, _Iterator) or not hasattr(iterator, "_next_data"):
        return iterator
    if kind not in _classes:
        _classes[kind] = type(kind.__name__, (_Iterator, kind), {"__module__": kind.__module__})
    workers = getattr(iterator, "_num_workers", 0)
    in_order = getattr(iterator, "_in_order", True)
    iterator._stoker_maker = Maker(workers, in_order=in_order, pinned=pins and bool(workers), place=place)
    iterator._stoker_pins = pins
    if workers and getattr(iterator, "_data_queue", None) is getattr(iterator, "_worker_result_queue", _classes):
        iterator._stoker_relay = Relay(iterator._data_queue, iterator._stoker_maker, batches.arrived)
        iterator._data_queue = iterator._stoker_relay
    iterator.__class__ = _classes[kind]
    return iterator


def get_iterator(
    enable: Callable[[], None],
    placed: Callable[[int], Place | None],
    original: Callable[[Any], Any],
    loader: DataLoader[Any],
) -> Any:
    """``DataLoader._get_iterator``: its workers have Stoker switched on, its batches are plain tensors.

    ``enable`` does so, and is found by its name in a worker; ``placed`` tells where a loader with so many workers has
    its batches, if not in this machine's memory.
    """
    if id(loader) in _within:  # a subclass that calls its base
        return original(loader)
    _within.add(id(loader))
    try:
        return _get_iterator(enable, placed, original, loader)
    finally:
        _within.discard(id(loader))


_within: set[int] = set()


def _get_iterator(
    enable: Callable[[], None], placed: Callable[[int], Place | None], original: Callable[[Any], Any], loader: Any
) -> Any:
    workers = loader.num_workers
    memory = _shared_zeros(workers + 1, len(counts.NAMES)) if workers else None  # one for each, and one for all
    receivers = [descriptors.Receiver() for _ in range(workers)]
    senders = [receiver.sender for receiver in receivers]
    start = loader.worker_init_fn
    if memory is not None:
        rows, flag = counts.watch(memory[:-1]), told.watch(memory[-1])
        start = Activation(start, enable, memory, senders, groups=delivery.is_elsewhere())
    # The loader's own pinning would make the pixels, on one thread: batches are made in pinned memory instead.
    pins = bool(loader.pin_memory) and torch.accelerator.is_available()
    try:
        with _replaced(loader, "worker_init_fn", start):
            with _replaced(loader, "pin_memory", loader.pin_memory and not pins):
                iterator = original(loader)
            iterator = watch(iterator, pins=pins, place=placed(workers))
    except BaseException:
        descriptors.close(receivers)
        raise
    for sender in senders:  # the workers have theirs
        sender.close()
    if memory is not None:
        iterator._stoker_counts, iterator._stoker_told = rows, flag
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


def delivered(data: Any, maker: Maker, iterator: Any) -> Any:
    """A batch with plain tensors; if one of its files is damaged, the batch as it is without Stoker."""
    for _ in range(_MOST_AGAIN):
        try:
            maker.finish(batches.find(data), batches.programs(data))
            break
        except retry.Damaged as error:
            found = error
        data = _again(data, iterator, found)  # not within: what it raises is the data set's alone
    return batches.plain(data)


def _again(data: Any, iterator: Any, found: retry.Damaged) -> Any:
    """Fetch a batch anew, in this process, from the random state of its start, since a file was ``found`` damaged."""
    origins = (row.node.source.origin for lazy in batches.find(data) for row in lazy._rows)
    origin = next((o for o in origins if o is not None), None)
    if origin is None or iterator._dataset_kind != 0:
        raise found  # a stream cannot be read again
    counts.add(counts.RETRIED)
    fetcher = _utils.fetch._MapDatasetFetcher(
        iterator._dataset, iterator._auto_collation, iterator._collate_fn, iterator._drop_last
    )
    after = retry.states() if iterator._num_workers else None
    retry.go_back(origin)
    try:
        with retry.as_worker(origin, iterator._dataset):
            return fetcher.fetch(origin.index)  # type: ignore[no-untyped-call]
    except Exception as error:  # as a worker does
        if isinstance(found.__cause__, told.Moved):
            error.add_note(f"Stoker has fetched this batch a second time: {found.__cause__}. {_KEEP}")
        if origin.worker is None:
            raise
        where = f"in DataLoader worker process {origin.worker[0]}"
        ExceptionWrapper(where=where).reraise()  # type: ignore[no-untyped-call]
    finally:
        if after is not None:
            retry.go_back(after)
