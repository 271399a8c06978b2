# SPDX-License-Identifier: Apache-2.0
"""Scheduler between a loader's result queue and the delivery: decides when batches are materialized.

A :class:`Relay` replaces a loader's result queue: its thread takes batches as they arrive. The thread of the
:class:`BatchScheduler` passes them to native threads in the order of delivery, and only while few batches with pixels
exist. Waiting batches are compressed files.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing import connection
from typing import Any, NamedTuple

import torch
from torch.utils.data import _utils

from ....contract.thread_start import close_dropped
from ....native import _native
from .. import counts, recording
from ..collation.program import Program
from ..gpu.destination import Destination, GpuMaterialization
from ..gpu.device_steps import DeviceSteps
from ..gpu.plans import JOBS_IN_FLIGHT
from ..materialize.materialization import Materialization, Take, count_recorded
from ..tensors.tensor import LazyTensor
from .pace import Pace

_POLL_S = 0.2  # how often a waiting thread checks whether it should end
_CLOSE_S = 5.0  # how long the relay's thread may take to end
_FEW_WORKERS = 2
_PLAIN_ITEMS = 8  # items without lazy tensors after which the relay's thread pauses
_MAX_WAITING = 2  # batches that are taken from the queue before there is memory for their pixels


# Finds the lazy tensors and programs of a batch, and hidden tensors, from the batch and its unpickled lazy tensors.
Receive = Callable[[Any, list[Any]], tuple[list[LazyTensor], list[Program], list[Any]]]


class _Batch:
    """Arrived batch; ``number`` is its position in the order of delivery."""

    def __init__(self, number: int, lazies: list[LazyTensor], programs: Sequence[Program] = ()) -> None:
        self.number = number
        self.lazies = lazies
        self.programs = programs
        self.materialization: Materialization | GpuMaterialization | None = None
        self.programs_done = threading.Event()  # set when its programs have run
        self.error: BaseException | None = None  # of its start or of its programs; the consumer raises it
        self.thread_s = 0.0  # time that threads have spent on it
        self.job_s = 0.0  # time that jobs on a GPU have taken

    def fail(self, error: BaseException) -> None:
        """End the batch with an error; no thread works on it."""
        self.materialization = None
        self.error = error
        self.programs_done.set()


class BatchScheduler:
    """Scheduler of one iterator's batches. They run on native threads, or without workers on the caller's thread."""

    def __init__(
        self,
        threads: int,
        *,
        in_order: bool = True,
        pinned: bool = False,
        destination: Destination | None = None,
        device_steps: DeviceSteps | None = None,
    ) -> None:
        self._pinned = pinned
        self._destination = destination  # None for host memory
        self._device_steps = device_steps  # of another device, if the last steps of images run there
        self._pool = _native.recipe.WorkerPool(threads) if threads else None
        self._pace = Pace(threads)
        self._job_pace = Pace(JOBS_IN_FLIGHT)  # of a GPU
        self._idle_batches = 1 if threads else 2  # batches whose memory may be idle
        self._idle_blocks = 0
        self._blocks: Any = None
        self._keep_blocks(1)
        self._in_order = in_order
        # Batches with pixels: the consumer's and the one in flight. With more workers there is a third one, for
        # consumers whose steps vary in time. The number grows by batches that the consumer keeps. A GPU needs two more:
        # several threads and the GPU itself work on a batch one after the other.
        self._max_batches = (2 if threads <= _FEW_WORKERS else 3) + 2 * (destination is not None)
        self._lock = threading.Lock()
        self._waiting: list[_Batch] = []
        self._started: list[_Batch] = []
        self._dropped: list[_Batch] = []  # not delivered; threads may still write into their memory
        self._next = 0  # number of the batch that starts next
        self._arrivals = 0  # number of arrived batches of this epoch
        self._lent_blocks = 0  # blocks in use: by batches in flight, and by those that the consumer has
        self._released: deque[None] = deque()  # filled when a block is released, on any thread, without a lock
        self._wake = threading.Event()
        self.room = threading.Event()  # set when the relay may take a batch from the queue
        self._closed = False
        self._thread: threading.Thread | None = None
        self._to_run: queue.Queue[_Batch | None] = queue.Queue()
        self._runner: threading.Thread | None = None
        # Lazy tensors in objects of unknown structure, by the id of their batch's data, which is kept alive here.
        self._hidden: dict[int, tuple[Any, list[Any]]] = {}

    # ---- called by the relay ----

    def hide(self, data: Any, hidden: list[Any]) -> None:
        """Remember the hidden tensors of a batch."""
        if hidden:
            self._hidden[id(data)] = data, hidden

    def take_hidden(self, data: Any) -> list[Any]:
        """Return the hidden tensors of a batch, and forget them."""
        return self._hidden.pop(id(data), (None, []))[1]

    def arrive(self, number: int | None, lazies: list[LazyTensor], programs: Sequence[Program] = ()) -> None:
        """Add an arrived batch. It starts in order, when there is memory. ``number`` None: it is the next one."""
        if self._pool is None:
            return
        with self._lock:
            if number is None or not self._in_order:
                number = self._arrivals
            self._arrivals += 1
            if number < self._next:  # the numbers start again
                self._next = number
            self._waiting.append(_Batch(number, lazies, programs))
            self._waiting.sort(key=lambda batch: batch.number)
            if not any(batch.lazies for batch in self._waiting):  # there is nothing for the thread to do
                self._pass_plain()
                return
            if self._thread is None and not self._closed:
                thread = threading.Thread(target=self._run, name="stoker-scheduler", daemon=True)
                thread.start()
                self._thread = thread  # assigned after the start: `close` joins it
        self._wake.set()

    def _pass_plain(self) -> None:
        """Remove the waiting batches up to the next one that has not arrived. None of them has lazy tensors."""
        while self._waiting and self._waiting[0].number <= self._next:
            self._next = max(self._next, self._waiting.pop(0).number + 1)
            self.room.set()

    def forget(self) -> None:
        """Drop all arrived batches, because another epoch begins."""
        with self._lock:
            self._waiting.clear()
            self._next = self._arrivals = 0
            self._dropped += self._started
            self._started = []
            self._hidden.clear()

    @property
    def is_full(self) -> bool:
        """Return whether enough batches wait."""
        return len(self._waiting) >= _MAX_WAITING

    # ---- the scheduler's thread ----

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait(_POLL_S)
            self._wake.clear()
            with self._lock:
                self._begin_ready()

    def _begin_ready(self) -> None:
        self._count_released()
        while self._waiting and not self._closed:
            batch = self._waiting[0]
            # the consumer does not request batches without lazy tensors
            if batch.number < self._next and not batch.lazies:
                self._waiting.pop(0)
                continue
            if batch.number != self._next or not self._has_room(batch):
                return
            self._waiting.pop(0)
            self._begin(batch)

    def _has_room(self, batch: _Batch) -> bool:
        return not batch.lazies or self._lent_blocks <= (self._max_batches - 1) * len(batch.lazies)

    def _count_released(self) -> None:
        self._dropped = [b for b in self._dropped if b.materialization is not None and not b.materialization.is_done]
        while self._released:
            self._released.popleft()
            self._lent_blocks -= 1

    def _begin(self, batch: _Batch) -> None:
        self._next = batch.number + 1
        self.room.set()
        if not batch.lazies:
            return
        self._started.append(batch)
        if self._counts_until_delivered:
            self._lent_blocks += len(batch.lazies)
        try:
            self._submit(batch)
        except BaseException as error:  # noqa: BLE001 - no memory, or no thread: the consumer raises it
            batch.fail(error)

    def _submit(self, batch: _Batch) -> None:
        assert self._pool is not None
        if self._has_programs_to_run(batch):
            self._start_runner()  # started first: no thread may write into a failed batch
        self._keep_blocks(len(batch.lazies))
        batch.materialization = self._new_materialization(batch.lazies, batch.programs, self._allocate)
        if batch.materialization.native_batch is not None:
            self._pool.submit(batch.materialization.native_batch)
        if self._has_programs_to_run(batch):
            self._to_run.put(batch)

    def _has_programs_to_run(self, batch: _Batch) -> bool:
        """Return whether a thread runs the batch's programs in advance. On a GPU the consumer launches them."""
        return bool(batch.programs) and self._destination is None

    def _start_runner(self) -> None:
        if self._runner is None:
            torch.get_num_threads()  # fixes this thread's number before another thread changes the default
            runner = threading.Thread(target=self._run_programs, name="stoker-programs", daemon=True)
            runner.start()
            self._runner = runner

    def _run_programs(self) -> None:
        """Run recorded collations as soon as their images exist; the target of a thread."""
        torch.set_num_threads(1)  # applies to this thread
        while (batch := self._to_run.get()) is not None and not self._closed:
            try:
                self._run_batch(batch)
            except BaseException as error:  # noqa: BLE001 - the consumer raises it
                batch.error = error
            batch.programs_done.set()

    def _run_batch(self, batch: _Batch) -> None:
        assert self._pool is not None and isinstance(batch.materialization, Materialization)
        while not self._pool.wait(batch.materialization.native_batch, _POLL_S):
            if self._closed:
                return
        batch.materialization.finish(None)
        batch.thread_s = batch.materialization.thread_s
        batch.materialization = None  # releases the memory of intermediate images
        for program in batch.programs:
            program.run(self._allocate, keep=True)

    def _new_materialization(
        self, lazies: list[LazyTensor], programs: Sequence[Program], take: Take
    ) -> Materialization | GpuMaterialization:
        if self._destination is not None:
            return GpuMaterialization(lazies, self._destination, take)
        if self._device_steps is not None and not programs:  # the CPU runs programs on the images
            return self._device_steps.materialization(lazies, take)
        return Materialization(lazies, take)

    @property
    def _counts_until_delivered(self) -> bool:
        """Return whether torch owns the memory, so that batches count until they are delivered."""
        return self._pinned or self._destination is not None

    def _keep_blocks(self, tensors: int) -> None:
        """Keep the idle memory of batches with this count of tensors. Blocks in use return to their own pool."""
        if tensors > self._idle_blocks:
            self._idle_blocks = tensors
            self._blocks = _native.recipe.block_pool(self._idle_batches * tensors)

    def _allocate(self, size: int) -> torch.Tensor:
        if self._pinned:
            # torch waits for copies before it reuses the memory
            return torch.empty(size, dtype=torch.uint8, pin_memory=True)
        if self._destination is not None:
            return torch.empty(size, dtype=torch.uint8)
        self._lent_blocks += 1
        released, wake = self._released, self._wake

        def release() -> None:
            released.append(None)
            wake.set()

        return torch.from_numpy(self._blocks.take(size, release))

    # ---- called by the consumer ----

    def finish(self, lazies: list[LazyTensor], programs: Sequence[Program] = ()) -> None:
        """Wait until all lazy tensors of a batch are materialized and its programs have run.

        Raises:
            Damaged: a file of the batch cannot be decoded.
        """
        if not lazies:
            return
        if self._pool is None:
            self._keep_blocks(len(lazies))
            materialization = self._new_materialization(
                lazies, programs, lambda size: torch.from_numpy(self._blocks.take(size))
            )
            if materialization.native_batch is not None:
                _native.recipe.materialize(materialization.native_batch)
            materialization.finish()
        else:
            self._finish_on_pool(lazies, programs, self._pool)
        for program in programs:
            program.run(keep=True)

    def _finish_on_pool(self, lazies: list[LazyTensor], programs: Sequence[Program], pool: Any) -> None:
        self._pace.request()
        self._job_pace.request()
        batch = self._find_or_begin(lazies, programs)
        materialization = batch.materialization
        if materialization is not None and materialization.native_batch is not None:
            pool.prioritize(materialization.native_batch)
        if materialization is not None and not materialization.is_done:  # the consumer waits
            self._set_active(self._pace.most, self._job_pace.most)
        if self._has_programs_to_run(batch) or batch.error is not None:
            batch.programs_done.wait()
        elif materialization is not None and materialization.native_batch is not None:
            while not pool.wait(materialization.native_batch, _POLL_S):
                pass
        with self._lock:  # not earlier: an owner must hold the memory while threads write into it
            self._started = [b for b in self._started if b is not batch]
            if self._counts_until_delivered:
                self._lent_blocks -= len(lazies)
        self._wake.set()
        if batch.error is not None:
            raise batch.error
        if self._has_programs_to_run(batch):
            counts.add(counts.NATIVE, count_recorded(lazies))
        elif materialization is not None:
            materialization.finish()
            batch.thread_s, batch.job_s = materialization.thread_s, materialization.job_s
        self._set_active(self._pace.deliver(batch.thread_s), self._job_pace.deliver(batch.job_s))

    def _set_active(self, threads: int, jobs: int) -> None:
        """Set the number of threads, and of jobs on a GPU, that work at a time."""
        if self._pool is not None:
            self._pool.set_active(threads)
        if self._destination is not None:
            self._destination.plans.set_active(self, jobs)

    def _find_or_begin(self, lazies: list[LazyTensor], programs: Sequence[Program]) -> _Batch:
        """Return the batch of these tensors, and start it if necessary."""
        with self._lock:
            known = [b for b in self._started + self._waiting if b.lazies and b.lazies[0] is lazies[0]]
            batch = known[0] if known else _Batch(self._next - 1, lazies, programs)  # a batch that is fetched again
            if batch not in self._started:
                if known:
                    self._waiting.remove(batch)
                    self._count_released()
                    self._max_batches += not self._has_room(batch)  # the consumer holds more batches than assumed
                self._begin(batch)
        return batch

    def close(self) -> None:
        """End the threads."""
        self._closed = True
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        if self._runner is not None:
            self._to_run.put(None)
            self._runner.join()
        if self._pool is not None:
            self._pool.close()
        if self._destination is not None:
            self._destination.plans.set_active(self, None)
        for batches in (self._waiting, self._started, self._dropped):
            batches.clear()

    def __del__(self) -> None:
        if not self._closed:
            close_dropped(self.close)


class _Item(NamedTuple):
    """Item of a loader's queue, or the error of reading it."""

    value: Any
    error: BaseException | None = None
    is_last: bool = False  # the relay's thread pauses after this item


class Relay:
    """Replacement of a loader's result queue: a thread takes batches, so that they can start early.

    After some batches without lazy tensors the thread pauses, and the consumer reads the queue itself: nothing can
    start early, and passing a batch from thread to thread takes time.
    """

    def __init__(self, source: Any, scheduler: BatchScheduler, arrived: Receive) -> None:
        self._ready: queue.Queue[_Item] = queue.Queue()
        self._stop = threading.Event()
        self._resume = threading.Event()
        self.is_paused = False  # known to the consumer only, and true once it has the thread's last item
        self._source = source
        self._scheduler = scheduler
        self._arrived = arrived
        self._stop_pipe = os.pipe()  # written to in order to end the thread without delay
        arguments = (source, scheduler, arrived, self._ready, self._stop, self._resume, self._stop_pipe[0])
        self._thread = threading.Thread(target=_relay, args=arguments, name="stoker-relay", daemon=True)
        self._thread.start()

    def get(self, timeout: float | None = None) -> Any:
        """Return the next item, like the queue's ``get``."""
        if self.is_paused:
            return self._read(timeout)
        if self._ready.empty():
            self._scheduler.room.set()
        item = self._ready.get(timeout=timeout)
        self.is_paused = item.is_last
        if item.error is not None:
            raise item.error
        return item.value

    def _read(self, timeout: float | None) -> Any:
        """Read the queue on the consumer's thread, and let the relay's thread go on if there is anything lazy."""
        with recording.tracking() as created:
            item = self._source.get(timeout=timeout)
        if _arrive(self._scheduler, item, created, self._arrived):
            self.is_paused = False
            self._resume.set()
        return item

    def close(self) -> None:
        """End the thread."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._scheduler.room.set()
        self._resume.set()
        os.write(self._stop_pipe[1], b"!")
        self._thread.join(_CLOSE_S)
        if self._thread.is_alive():
            return  # the thread reads half a message of a killed worker; it is a daemon
        for end in self._stop_pipe:
            os.close(end)


def _relay(
    source: Any,
    scheduler: BatchScheduler,
    arrived: Receive,
    ready: queue.Queue[_Item],
    stop: threading.Event,
    resume: threading.Event,
    stop_end: int,
) -> None:
    reader = getattr(source, "_reader", None)  # of a multiprocessing queue; a thread's queue has none
    plain_items = 0
    while not stop.is_set():
        scheduler.room.clear()
        if scheduler.is_full and not ready.empty():
            scheduler.room.wait(_POLL_S)
            continue
        try:
            if reader is not None and stop_end in connection.wait([reader, stop_end]):
                return
            with recording.tracking() as created:
                item = source.get(timeout=_POLL_S)
            plain_items = 0 if _arrive(scheduler, item, created, arrived) else plain_items + 1
        except queue.Empty:
            continue
        except Exception as error:  # noqa: BLE001 - the queue's reader raises it
            if stop.is_set():
                return
            ready.put(_Item(None, error))
            time.sleep(_POLL_S)
            continue
        resume.clear()
        ready.put(_Item(item, is_last=plain_items >= _PLAIN_ITEMS))
        if plain_items >= _PLAIN_ITEMS:
            item = None  # the consumer owns it
            if not stop.is_set():  # set before `resume`, which this thread may have cleared afterwards
                resume.wait()
            plain_items = 0


def _arrive(scheduler: BatchScheduler, item: Any, created: list[Any], arrived: Receive) -> bool:
    """Process an item of a loader's queue: (number, data), or a worker's message that another epoch may begin.

    Returns:
        Whether the item contains anything lazy.
    """
    number = item[0] if isinstance(item, tuple) and item else None
    if isinstance(number, _utils.worker._ResumeIteration):
        scheduler.forget()
        return False
    data = item[1] if isinstance(item, tuple) and len(item) > 1 else item
    lazies, programs, hidden = arrived(data, created)
    scheduler.hide(data, hidden)
    scheduler.arrive(number if type(number) is int else None, lazies, programs)
    return bool(lazies or programs or hidden)
