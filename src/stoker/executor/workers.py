# SPDX-License-Identifier: Apache-2.0
"""Worker processes that run the user's sources. Results return in order, through shared memory."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import pickle
import signal
import socket
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from ..contract.config import WorkerConfig
from ..contract.errors import ArgumentError, DataError, StateError
from ..contract.text import reason_of
from ..contract.warning import ignored
from .channel import (
    WITH_DESCRIPTOR,
    BlockLease,
    Channel,
    ChannelClosed,
    Message,
    SharedRequest,
    lay_out,
    make_block,
    map_block,
    read,
    write,
)
from .worker_process import Descriptor, RemoteException, run_worker

_POLL_S = 0.1  # longest delay until a `close` in another thread is noticed
_GRACE_S = 1.0  # time that `close` gives a worker to finish its task


class _Pickler:
    """Pickler of producers for spawned processes.

    Args:
        pickler: see :class:`stoker.contract.config.WorkerConfig`.
        what: the producers, for messages.
    """

    def __init__(self, pickler: Any, what: str) -> None:
        self._what = what
        parts = pickler if isinstance(pickler, tuple) else (pickle if pickler is None else pickler,)
        self._module = parts[0]
        self._dumping = dict(parts[1] if len(parts) > 1 else {})
        self._loading = dict(parts[2] if len(parts) > 2 else {})

    def dumps(self, producer: Any) -> bytes:
        """Serialize a producer for another process.

        Raises:
            ArgumentError: the producer cannot be serialized.
        """
        try:
            return bytes(self._module.dumps(producer, **self._dumping))
        except Exception as error:  # picklers raise many kinds of errors
            raise ArgumentError(
                f"expected {self._what} that can be sent to another process, got one that cannot: "
                f"{type(error).__name__}: {reason_of(error)}. Define it at the top of a module, or pass "
                '`py_start_method="fork"` or `py_callback_pickler=` to the pipeline'
            ) from error

    def loader(self) -> Callable[[bytes], Any]:
        """Return the function that loads the bytes of :meth:`dumps`."""
        return _Loader(self._module.loads, self._loading)


@dataclass(frozen=True)
class _Loader:
    loads: Callable[..., Any]
    keywords: dict[str, Any]

    def __call__(self, data: bytes) -> Any:
        return self.loads(data, **self.keywords)


@dataclass(eq=False, slots=True)
class Task:
    """Request to a worker."""

    id: int
    producer: int
    request: Any
    worker: _Worker | None = None
    answer: Any = None  # (succeeded, result, its block)
    lease: BlockLease | None = None
    wanted: bool = True
    shares: bool = False  # arrays of the request go through shared memory


@dataclass(eq=False)
class _Worker:
    """Worker process as its parent sees it."""

    number: int
    process: Any
    channel: Channel
    crash_log: int
    blocks: dict[int, np.ndarray[Any, Any]] = field(default_factory=dict)
    free: deque[int] = field(default_factory=deque)
    leased: dict[int, weakref.ref[BlockLease]] = field(default_factory=dict)
    tasks: dict[int, Task] = field(default_factory=dict)
    outbox: deque[Message] = field(default_factory=deque)
    shared: np.ndarray[Any, Any] | None = None  # memory of requests with arrays, one request at a time
    is_gone: bool = False

    def vacant(self) -> int | None:
        """Return a free block.

        The search replaces destructors that report free blocks: a destructor would swallow a Ctrl-C.
        """
        if self.free:
            return self.free.popleft()
        block = next((b for b, lease in self.leased.items() if lease() is None), None)
        if block is not None:
            del self.leased[block]
        return block

    def flush(self) -> None:
        """Send pending messages. A dead process is detected later, when its channel has no more answers."""
        with contextlib.suppress(ChannelClosed):
            while self.outbox:
                self.channel.send(self.outbox[0], self.outbox[0].fd)
                self.outbox[0].close()
                self.outbox.popleft()

    def request(self, task: Task) -> Message:
        """Return the message of a task. Arrays are copied to shared memory if the task says so."""
        block = self.vacant()
        if not task.shares:
            return Message((task.id, task.producer, task.request, block))
        arrays: list[tuple[int, Any]] = []
        data, size = lay_out(task.request, arrays)
        fd = None
        if size and (self.shared is None or size > self.shared.size):
            fd, self.shared = make_block(size)
        if self.shared is not None:
            write(self.shared, arrays)
        content = (task.id, task.producer, SharedRequest(data), block)
        return Message(content if fd is None else (*content, WITH_DESCRIPTOR), fd)

    def take(self) -> None:
        """Process received messages.

        It may run again after Ctrl-C, which may lose a block but never frees one twice.
        """
        for (task_id, good, answer, block, dropped, *_), fd in self.channel.messages():
            if fd is not None and block not in self.blocks:
                self.blocks[block] = map_block(fd)
                os.close(fd)
            self.blocks.pop(dropped, None)
            task = self.tasks.get(task_id)
            if task is None:
                continue
            fresh, task.answer = task.answer is None, (good, answer, block)
            del self.tasks[task_id]
            if fresh and block is not None and not (task.wanted and good):
                self.free.append(block)
        self.channel.forget()

    def ended(self) -> str:
        """Describe how the process ended."""
        self.process.join(_GRACE_S)
        code = self.process.exitcode
        if code is None:
            return "closed its connection"
        if code >= 0:
            return f"ended with exit code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"was killed by {name}" + (" (was memory short?)" if -code == signal.SIGKILL else "")

    def crash(self) -> str:
        """Return the interpreter's output from its crash."""
        size = os.fstat(self.crash_log).st_size
        return os.pread(self.crash_log, min(size, 1 << 16), 0).decode(errors="replace").strip()

    def release(self) -> None:
        """End the process if it still runs, and release everything except blocks, which hold answers that arrived in
        time.
        """
        self.channel.close()
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.process.close()
        os.close(self.crash_log)
        for message in self.outbox:
            message.close()


class WorkerDied(DataError):
    """A worker process ended during a task.

    Attributes:
        ended: how, as a part of a sentence.
    """

    ends_process = True
    ended = ""


class WorkerTraceback(Exception):
    """Traceback of a worker process, used as the cause of the error that the parent raises."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._text = text

    def __str__(self) -> str:
        return f"\n{self._text}"


class ProcessWorkerPool:
    """Worker processes of one pipeline. They start with the first request, or by :meth:`start`.

    Args:
        config: number of processes, and how they start.
        purpose: the argument that asks for them, for messages.
    """

    def __init__(self, config: WorkerConfig, purpose: str = "parallel") -> None:
        self.config = config
        self._purpose = purpose
        self._pickler = _Pickler(config.pickler, "a source" if purpose == "parallel" else "an operator")
        self._producers: list[Any] = []
        self._stateful: set[int] = set()
        self._workers: list[_Worker] = []
        self._ids = itertools.count()
        self._closed = False
        self._pid = os.getpid()

    @property
    def count(self) -> int:
        return self.config.count

    def add(self, producer: Callable[[Any], Any], *, stateful: bool) -> int:
        """Register a producer before the start and return its number. A stateful producer stays in one process.

        Raises:
            ArgumentError: the producer cannot be sent to another process, which "spawn" needs.
        """
        self._producers.append(self._pickler.dumps(producer) if self.config.start_method == "spawn" else producer)
        number = len(self._producers) - 1
        if stateful:
            self._stateful.add(number)
        return number

    def memory(self) -> list[int]:
        """Return the sizes in bytes of all shared blocks."""
        return [int(block.size) for worker in self._workers for block in worker.blocks.values()]

    # ---- start and end ----

    def start(self) -> None:
        """Start the processes if they do not run. With "fork", call it before the program starts other threads."""
        if self._closed:
            raise StateError("the pipeline is closed")
        if self._workers:
            return
        if multiprocessing.current_process().daemon:
            raise StateError(
                f"expected a process that may have worker processes of its own for `{self._purpose}=True`, got a "
                f"daemonic one (such as a worker of a DataLoader). Use {self._purpose}=False there, or num_workers=0 "
                "in the DataLoader"
            )
        self._pid = os.getpid()
        try:
            for number in range(self.count):
                self._workers.append(self._launch(number))
        except BaseException:  # out of processes or memory, or Ctrl-C: start all processes or none
            started, self._workers = self._workers, []
            for worker in started:
                worker.release()
            raise

    def _launch(self, number: int) -> _Worker:
        context: Any = multiprocessing.get_context(self.config.start_method)
        mine, theirs = socket.socketpair()
        crash_log = os.memfd_create("stoker-crash-log", os.MFD_CLOEXEC)
        forks = self.config.start_method == "fork"
        others = [mine, *(w.channel._socket for w in self._workers if not w.is_gone)] if forks else []
        process = context.Process(
            target=run_worker, name=f"stoker-worker-{number}", daemon=True,
            args=(theirs, self._producers, self._pickler.loader(), Descriptor(crash_log), os.getpid(), others),
        )  # fmt: skip
        # Newer Pythons warn of a fork in a threaded process. Here the child runs only the source's code.
        with theirs, ignored(DeprecationWarning):
            try:
                process.start()
            except BaseException:
                mine.close()
                os.close(crash_log)
                raise
        return _Worker(number, process, Channel(mine), crash_log)

    def close(self) -> None:
        """End all processes; idempotent.

        A process that runs the user's code has a second to return and is then killed.
        """
        self._closed = True
        if os.getpid() != self._pid:  # a forked child of the process that owns them
            return
        workers, self._workers = self._workers, []
        for worker in workers:
            worker.outbox.append(Message(None))
            worker.flush()
        deadline = time.monotonic() + _GRACE_S
        for worker in workers:
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                worker.process.terminate()
                worker.process.join(_GRACE_S)
            worker.release()
            worker.blocks.clear()

    # ---- work ----

    def submit(self, producer: int, request: Any) -> Task:
        """Send a request; see :meth:`result`. A stateful producer answers in the order of requests."""
        return self._submit(Task(next(self._ids), producer, request))

    def submit_shared(self, producer: int, request: Any) -> Task:
        """Send a request whose arrays go through shared memory, which is that of the next such request too: the caller
        waits for the task, or ends it, before that.
        """
        return self._submit(Task(next(self._ids), producer, request, shares=True))

    def _submit(self, task: Task) -> Task:
        self.start()
        self._give(task)
        return task

    def end(self, task: Task) -> None:
        """Discard a task and end its process, which the next request replaces."""
        self.drop(task)
        if task.answer is None and task.worker is not None and not self._closed:
            task.worker.process.kill()

    def _give(self, task: Task) -> None:
        if task.producer in self._stateful:
            worker = self._workers[task.producer % self.count]
        else:
            worker = min(self._workers, key=lambda w: (w.is_gone, len(w.tasks), w.number))
        task.worker = worker
        worker.tasks[task.id] = task
        worker.outbox.append(worker.request(task))
        worker.flush()

    def drop(self, task: Task) -> None:
        """Discard a task: no caller will request its result."""
        wanted, task.wanted = task.wanted, False
        if wanted and task.answer is not None and task.lease is None and task.worker is not None:
            good, _, block = task.answer
            if good and block is not None:
                task.worker.free.append(block)

    def result(self, task: Task) -> Any:
        """Wait for a task and return its arrays, which lie in shared memory as long as they are referenced.

        Raises:
            WorkerDied: its process ended; a new one replaces it.
            StateError: the pipeline was closed during the wait.
            Exception: the producer's exception, with the worker's traceback as its cause.
        """
        while task.answer is None:
            if self._closed:
                raise StateError("the pipeline was closed while a source's processes were awaited")
            self.wait()
        good, answer, block = task.answer
        worker = task.worker
        assert worker is not None
        if not good:
            raise _as_error(answer)
        if block is None:
            return read(answer, None)
        if task.lease is None:
            task.lease = BlockLease(worker.blocks[block])
        worker.leased[block] = weakref.ref(task.lease)
        return read(answer, np.asarray(task.lease))

    def ready(self, task: Task) -> bool:
        """Return whether :meth:`result` would return without waiting."""
        if task.answer is None and not self._closed:
            self.wait(0)
        return task.answer is not None

    def wait(self, timeout_s: float = _POLL_S) -> None:
        """Process received messages, or wait a short time for one."""
        for worker in self._workers:
            worker.flush()
            worker.take()  # both calls continue where Ctrl-C interrupted them
        by_channel: dict[Any, _Worker] = {w.channel: w for w in self._workers if not w.is_gone}
        for channel in wait([*by_channel], timeout_s):
            try:
                channel.receive()  # type: ignore[union-attr]
            except ChannelClosed:
                by_channel[channel].is_gone = True
            by_channel[channel].take()
        for worker in [w for w in self._workers if w.is_gone]:
            if self._closed:
                return
            self._replace(worker)

    def _replace(self, dead: _Worker) -> None:
        """Fail the task of the dead process, and start a new process for its other tasks."""
        ended = dead.ended()
        text = f"a worker process (number {dead.number}, process {dead.process.pid}) {ended}"
        error = WorkerDied(f"{text} while the source ran in it")
        error.ended = ended
        crash = dead.crash()
        if crash:
            error.__cause__ = WorkerTraceback(crash)
        tasks = list(dead.tasks.values())
        self._workers[dead.number] = self._launch(dead.number)
        dead.release()
        for task in tasks:
            if task is tasks[0] or task.producer in self._stateful:
                task.answer = (False, error, None)
            elif task.wanted:
                self._give(task)


def _as_error(answer: Any) -> BaseException:
    if not isinstance(answer, RemoteException):
        return answer  # type: ignore[no-any-return]
    error: Any = None
    if answer.pickled is not None:
        with contextlib.suppress(Exception):  # the parent may not be able to unpickle the class; name and text remain
            error = pickle.loads(answer.pickled)
    if not isinstance(error, Exception):  # SystemExit ends the worker's task, not this process
        error = DataError(f"{answer.name}: {answer.text}")
    error.__cause__ = WorkerTraceback(answer.traceback)
    return error  # type: ignore[no-any-return]
