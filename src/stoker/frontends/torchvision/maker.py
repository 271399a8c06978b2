# SPDX-License-Identifier: Apache-2.0
"""Batches between a loader's result queue and their delivery: which are made when, and in how much memory.

A :class:`Relay` stands where a loader's result queue stood: a thread of it takes batches as they come. Another thread,
the :class:`Maker`'s, gives them to native threads, in the order in which they will be delivered and only while few
batches with pixels exist. What waits is compressed files.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing import connection
from typing import Any

import torch
from torch.utils.data import _utils

from ...native import _native
from . import counts
from .making import Making, Take, recorded
from .place import Place, PlacedMaking
from .program import Program
from .tensor import LazyTensor

_LOOK_S = 0.2  # how often a waiting thread looks whether it should end
_CLOSE_S = 5.0  # how long the relay's thread may take to end
_FEW_WORKERS = 2
_TAKEN = 2  # batches that are taken from the queue before there is room for their pixels


Arrived = Callable[[Any], tuple[list[LazyTensor], list[Program]]]  # what a batch waits for


class _Batch:
    """A batch that has come; ``number`` says when it is its turn."""

    def __init__(self, number: int, lazies: list[LazyTensor], programs: Sequence[Program] = ()) -> None:
        self.number = number
        self.lazies = lazies
        self.programs = programs
        self.making: Making | PlacedMaking | None = None
        self.is_run = threading.Event()  # its programs
        self.error: BaseException | None = None  # of doing that


class Maker:
    """Makes the batches of one iterator: on native threads if it has workers, else on the caller's."""

    def __init__(
        self, threads: int, *, in_order: bool = True, pinned: bool = False, place: Place | None = None
    ) -> None:
        self._pinned = pinned
        self._place = place  # where batches are made, if not in this machine's memory
        self._crew = _native.recipe.Crew(threads) if threads else None
        self._blocks = _native.recipe.blocks(1 if threads else 2)
        self._in_order = in_order
        # Batches with pixels: the consumer's and the one that is made meanwhile; with more workers a third one, for
        # consumers that do not always take the same time. It grows by what the consumer turns out to hold.
        # On a GPU two more: between a batch's beginning and its end lie several threads' turns and the GPU's own time.
        self._most = (2 if threads <= _FEW_WORKERS else 3) + 2 * (place is not None)
        self._lock = threading.Lock()
        self._waiting: list[_Batch] = []
        self._started: list[_Batch] = []
        self._dropped: list[_Batch] = []  # will not be delivered; threads may still write into their memory
        self._next = 0  # the number of the batch that is begun next
        self._arrived = 0
        self._lent = 0  # pieces of memory that are lent, of batches under way and of those that the consumer has
        self._released: deque[None] = deque()  # filled where memory is given back, on any thread, without a lock
        self._wake = threading.Event()
        self.room = threading.Event()  # something may be taken from the queue
        self._closed = False
        self._thread: threading.Thread | None = None
        self._to_run: queue.Queue[_Batch | None] = queue.Queue()
        self._runner: threading.Thread | None = None

    # ---- the relay's side ----

    def arrive(self, number: int | None, lazies: list[LazyTensor], programs: Sequence[Program] = ()) -> None:
        """A batch has come; it is begun when it is its turn and there is room. Without a number: in this order."""
        if self._crew is None:
            return
        with self._lock:
            if number is None or not self._in_order:
                number = self._arrived
            self._arrived += 1
            if number < self._next:  # numbers begin anew
                self._next = number
            self._waiting.append(_Batch(number, lazies, programs))
            self._waiting.sort(key=lambda batch: batch.number)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="stoker-maker", daemon=True)
                self._thread.start()
        self._wake.set()

    def forget(self) -> None:
        """What has come so far will not be delivered: another epoch begins."""
        with self._lock:
            self._waiting.clear()
            self._next = self._arrived = 0
            self._dropped += self._started
            self._started = []

    @property
    def full(self) -> bool:
        """Whether enough is waiting."""
        return len(self._waiting) >= _TAKEN

    # ---- its own thread ----

    def _run(self) -> None:
        while not self._closed:
            self._wake.wait(_LOOK_S)
            self._wake.clear()
            with self._lock:
                self._begin_what_fits()

    def _begin_what_fits(self) -> None:
        self._count_released()
        while self._waiting and not self._closed:
            batch = self._waiting[0]
            if batch.number < self._next and not batch.lazies:  # nobody waits for what needs no making
                self._waiting.pop(0)
                continue
            if batch.number != self._next or not self._has_room(batch):
                return
            self._waiting.pop(0)
            self._begin(batch)

    def _has_room(self, batch: _Batch) -> bool:
        return not batch.lazies or self._lent <= (self._most - 1) * len(batch.lazies)

    def _count_released(self) -> None:
        self._dropped = [b for b in self._dropped if b.making is not None and not b.making.done]
        while self._released:
            self._released.popleft()
            self._lent -= 1

    def _begin(self, batch: _Batch) -> None:
        assert self._crew is not None
        self._next = batch.number + 1
        self.room.set()
        if not batch.lazies:
            return
        batch.making = self._making(batch.lazies, self._take)
        self._started.append(batch)
        if self._counts_turns:
            self._lent += len(batch.lazies)
        if batch.making.order is not None:
            self._crew.submit(batch.making.order)
        if self._runs(batch):
            self._run_later(batch)

    def _runs(self, batch: _Batch) -> bool:
        """Whether a thread runs the batch's programs ahead; where a GPU does it, the consumer has it begin."""
        return bool(batch.programs) and self._place is None

    def _run_later(self, batch: _Batch) -> None:
        if self._runner is None:
            torch.get_num_threads()  # which settles how many this thread has, before another one is told otherwise
            self._runner = threading.Thread(target=self._run_programs, name="stoker-programs", daemon=True)
            self._runner.start()
        self._to_run.put(batch)

    def _run_programs(self) -> None:
        """A thread's work: what collations have recorded, as soon as the images are there."""
        torch.set_num_threads(1)  # this thread's own
        while (batch := self._to_run.get()) is not None and not self._closed:
            try:
                self._run_batch(batch)
            except BaseException as error:  # noqa: BLE001 - the consumer raises it
                batch.error = error
            batch.is_run.set()

    def _run_batch(self, batch: _Batch) -> None:
        assert self._crew is not None and isinstance(batch.making, Making)
        while not self._crew.wait(batch.making.order, _LOOK_S):
            if self._closed:
                return
        batch.making.finish(None)
        batch.making = None  # and with it the memory of images that are only worked on
        for program in batch.programs:
            program.run(self._take, keep=True)

    def _making(self, lazies: list[LazyTensor], take: Take) -> Making | PlacedMaking:
        return Making(lazies, take) if self._place is None else PlacedMaking(lazies, self._place, take)

    @property
    def _counts_turns(self) -> bool:
        """Whether torch keeps the memory, so that batches count until they are delivered."""
        return self._pinned or self._place is not None

    def _take(self, size: int) -> torch.Tensor:
        if self._pinned:
            return torch.empty(size, dtype=torch.uint8, pin_memory=True)  # torch waits for copies before it reuses it
        if self._place is not None:
            return torch.empty(size, dtype=torch.uint8)
        self._lent += 1
        released, wake = self._released, self._wake

        def give_back() -> None:
            released.append(None)
            wake.set()

        return torch.from_numpy(self._blocks.take(size, give_back))

    # ---- the consumer's side ----

    def finish(self, lazies: list[LazyTensor], programs: Sequence[Program] = ()) -> None:
        """Wait until all lazy tensors of a batch are real, and its programs have run.

        Raises:
            Damaged: a file of it cannot be decoded.
        """
        if not lazies:
            return
        if self._crew is None:
            making = self._making(lazies, lambda size: torch.from_numpy(self._blocks.take(size)))
            if making.order is not None:
                _native.recipe.make(making.order)
            making.finish()
        else:
            self._finish_made(lazies, programs, self._crew)
        for program in programs:
            program.run(keep=True)

    def _finish_made(self, lazies: list[LazyTensor], programs: Sequence[Program], crew: Any) -> None:
        batch = self._begun(lazies, programs)
        making = batch.making
        if making is not None and making.order is not None:
            crew.hasten(making.order)
        if self._runs(batch):
            batch.is_run.wait()
        elif making is not None and making.order is not None:
            while not crew.wait(making.order, _LOOK_S):
                pass
        with self._lock:  # only now: while threads write into its memory, somebody must hold it
            self._started = [b for b in self._started if b is not batch]
            if self._counts_turns:
                self._lent -= len(lazies)
        self._wake.set()
        if batch.error is not None:
            raise batch.error
        if self._runs(batch):
            counts.add(counts.MADE, recorded(lazies))
        elif making is not None:
            making.finish()

    def _begun(self, lazies: list[LazyTensor], programs: Sequence[Program]) -> _Batch:
        """The batch of these tensors, which is begun at once if it was not before."""
        with self._lock:
            known = [b for b in self._started + self._waiting if b.lazies and b.lazies[0] is lazies[0]]
            batch = known[0] if known else _Batch(self._next - 1, lazies, programs)  # one that is made again
            if batch not in self._started:
                if known:
                    self._waiting.remove(batch)
                    self._count_released()
                    self._most += not self._has_room(batch)  # the consumer holds more batches than was thought
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
        if self._crew is not None:
            self._crew.close()
        for batches in (self._waiting, self._started, self._dropped):
            batches.clear()

    def __del__(self) -> None:
        self.close()


class Relay:
    """Stands where a loader's result queue stood: a thread takes what comes, so that its pixels are begun."""

    def __init__(self, source: Any, maker: Maker, arrived: Arrived) -> None:
        self._ready: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue()
        self._stop = threading.Event()
        self._maker = maker
        self._bell = os.pipe()  # rung to end the thread at once, rather than when it next looks
        arguments = (source, maker, arrived, self._ready, self._stop, self._bell[0])
        self._thread = threading.Thread(target=_relay, args=arguments, name="stoker-relay", daemon=True)
        self._thread.start()

    def get(self, timeout: float | None = None) -> Any:
        """As the queue's."""
        if self._ready.empty():
            self._maker.room.set()
        item, error = self._ready.get(timeout=timeout)
        if error is not None:
            raise error
        return item

    def close(self) -> None:
        """End the thread."""
        if self._stop.is_set():
            return
        self._stop.set()
        self._maker.room.set()
        os.write(self._bell[1], b"!")
        self._thread.join(_CLOSE_S)
        if self._thread.is_alive():
            return  # it reads a message of which a worker that was killed has sent a part; the process does not wait
        for end in self._bell:
            os.close(end)


def _relay(
    source: Any,
    maker: Maker,
    arrived: Arrived,
    ready: Any,
    stop: Any,
    bell: int,
) -> None:
    reader = getattr(source, "_reader", None)  # a multiprocessing queue's; a thread's queue has none
    while not stop.is_set():
        maker.room.clear()
        if maker.full and not ready.empty():
            maker.room.wait(_LOOK_S)
            continue
        try:
            if reader is not None and bell in connection.wait([reader, bell]):
                return
            item = source.get(timeout=_LOOK_S)
            _arrive(maker, item, arrived)
        except queue.Empty:
            continue
        except Exception as error:  # noqa: BLE001 - it is raised where the queue is read, as it would have been
            if stop.is_set():
                return
            ready.put((None, error))
            time.sleep(_LOOK_S)
            continue
        ready.put((item, None))


def _arrive(maker: Maker, item: Any, arrived: Arrived) -> None:
    """What came out of a loader's queue: (number, data), or a worker's word that another epoch may begin."""
    number = item[0] if isinstance(item, tuple) and item else None
    if isinstance(number, _utils.worker._ResumeIteration):
        maker.forget()
    else:
        maker.arrive(number if type(number) is int else None, *arrived(item))
