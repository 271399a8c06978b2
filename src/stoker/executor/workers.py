# SPDX-License-Identifier: Apache-2.0
"""Worker processes that run the user's sources beside this process. Results come back in order, by shared memory."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import pickle
import signal
import socket
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from typing import Any

import numpy as np

from ..contract.errors import ArgumentError, DataError, StateError
from ..contract.whole import whole
from .channel import Channel, Closed, Lease, Message, map_block, read
from .worker_process import Descriptor, Failure, work

_POLL_S = 0.1  # how long a `close` in another thread may go unnoticed
_GRACE_S = 1.0  # how long `close` lets a worker finish what it is at
_METHODS = ("fork", "spawn")


@dataclass(frozen=True)
class WorkerSettings:
    """How many worker processes, how they are started, and what sends the user's code to them.

    Attributes:
        count: processes.
        start_method: "fork" or "spawn".
        pickler: None, or an object with ``dumps`` and ``loads``, or a tuple of it and keyword arguments for each.
    """

    count: int = 1
    start_method: str = "fork"
    pickler: Any = None

    def check(self) -> None:
        """ArgumentError for what cannot be."""
        if (whole(self.count) or 0) < 1:
            raise ArgumentError(f"`Pipeline`: expected `py_num_workers` >= 1, got {self.count!r}")
        if self.start_method not in _METHODS:
            raise ArgumentError(f"`Pipeline`: expected `py_start_method` in {_METHODS}, got {self.start_method!r}")
        module, _, _ = self._parts()
        if not (hasattr(module, "dumps") and hasattr(module, "loads")):
            raise ArgumentError(
                f"`Pipeline`: expected `py_callback_pickler` with `dumps` and `loads` (such as the module "
                f"cloudpickle), or a tuple of it and keyword arguments for each, got {self.pickler!r}"
            )

    def _parts(self) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        parts = self.pickler if isinstance(self.pickler, tuple) else (self.pickler,)
        module = pickle if self.pickler is None else parts[0]
        return module, dict(parts[1] if len(parts) > 1 else {}), dict(parts[2] if len(parts) > 2 else {})

    def dumps(self, producer: Any) -> bytes:
        """A producer for another process; ArgumentError if it cannot be sent."""
        module, keywords, _ = self._parts()
        try:
            return bytes(module.dumps(producer, **keywords))
        except Exception as error:  # picklers raise many things
            raise ArgumentError(
                f"expected a source that can be sent to another process, got one that cannot: "
                f"{type(error).__name__}: {error}. Define it at the top of a module, or pass "
                '`py_start_method="fork"` or `py_callback_pickler=` to the pipeline'
            ) from error

    def loader(self) -> Callable[[bytes], Any]:
        """What takes :meth:`dumps`' bytes apart."""
        module, _, keywords = self._parts()
        return _Loader(module.loads, keywords)


@dataclass(frozen=True)
class _Loader:
    loads: Callable[..., Any]
    keywords: dict[str, Any]

    def __call__(self, data: bytes) -> Any:
        return self.loads(data, **self.keywords)


@dataclass(eq=False, slots=True)
class Task:
    """Something that a worker was asked for."""

    id: int
    producer: int
    request: Any
    worker: _Worker | None = None
    answer: Any = None  # (succeeded, what was made, its block)
    lease: Lease | None = None
    wanted: bool = True


@dataclass(eq=False)
class _Worker:
    """A worker process as its parent sees it."""

    number: int
    process: Any
    channel: Channel
    faults: int
    blocks: dict[int, np.ndarray[Any, Any]] = field(default_factory=dict)
    free: deque[int] = field(default_factory=deque)
    leased: dict[int, weakref.ref[Lease]] = field(default_factory=dict)
    tasks: dict[int, Task] = field(default_factory=dict)
    outbox: deque[Message] = field(default_factory=deque)
    gone: bool = False

    def vacant(self) -> int | None:
        """A block that nobody uses. (Looked for rather than told by destructors, in which a Ctrl-C would vanish.)"""
        if self.free:
            return self.free.popleft()
        block = next((b for b, lease in self.leased.items() if lease() is None), None)
        if block is not None:
            del self.leased[block]
        return block

    def flush(self) -> None:
        """Send what waits. That the process has gone is seen where its answers, and then nothing, are received."""
        with contextlib.suppress(Closed):
            while self.outbox:
                self.channel.send(self.outbox[0])
                self.outbox.popleft()

    def take(self) -> None:
        """Deal with what has come. May be done again after Ctrl-C, which may lose a block but never frees one twice."""
        for (task_id, good, made, block, dropped, *_), fd in self.channel.messages():
            if fd is not None and block not in self.blocks:
                self.blocks[block] = map_block(fd)
                os.close(fd)
            self.blocks.pop(dropped, None)
            task = self.tasks.get(task_id)
            if task is None:
                continue
            fresh, task.answer = task.answer is None, (good, made, block)
            del self.tasks[task_id]
            if fresh and block is not None and not (task.wanted and good):
                self.free.append(block)
        self.channel.forget()

    def ended(self) -> str:
        """How the process ended, in words."""
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
        """What the interpreter wrote when it crashed."""
        size = os.fstat(self.faults).st_size
        return os.pread(self.faults, min(size, 1 << 16), 0).decode(errors="replace").strip()

    def release(self) -> None:
        """End the process, if it still runs, and give back all but its blocks, which hold answers that came in time."""
        self.channel.close()
        if self.process.is_alive():
            self.process.kill()
        self.process.join()
        self.process.close()
        os.close(self.faults)


class WorkerDied(DataError):
    """A worker process ended while it made something."""

    ends_process = True


class WorkerTraceback(Exception):
    """Where a worker process was; the cause of what is raised here."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._text = text

    def __str__(self) -> str:
        return f"\n{self._text}"


class Workers:
    """Worker processes of one pipeline. They start with the first request, or by :meth:`start`."""

    def __init__(self, settings: WorkerSettings) -> None:
        settings.check()
        self.settings = settings
        self._producers: list[Any] = []
        self._stateful: set[int] = set()
        self._workers: list[_Worker] = []
        self._ids = itertools.count()
        self._closed = False
        self._pid = os.getpid()

    @property
    def count(self) -> int:
        return self.settings.count

    def add(self, producer: Callable[[Any], Any], *, stateful: bool) -> int:
        """Make a producer known, before the start; its number. A stateful one stays in one process.

        Raises:
            ArgumentError: it cannot be sent to another process, which "spawn" needs.
        """
        self._producers.append(self.settings.dumps(producer) if self.settings.start_method == "spawn" else producer)
        number = len(self._producers) - 1
        if stateful:
            self._stateful.add(number)
        return number

    def memory(self) -> list[int]:
        """Bytes of every block of shared memory."""
        return [int(block.size) for worker in self._workers for block in worker.blocks.values()]

    # ---- start and end ----

    def start(self) -> None:
        """Start the processes, if they do not run. With "fork" better before other threads of the program start."""
        if self._closed:
            raise StateError("the pipeline is closed")
        if self._workers:
            return
        if multiprocessing.current_process().daemon:
            raise StateError(
                "expected a process that may have worker processes of its own for `parallel=True`, got a daemonic one "
                "(such as a worker of a DataLoader). Use parallel=False there, or num_workers=0 in the DataLoader"
            )
        self._pid = os.getpid()
        try:
            for number in range(self.count):
                self._workers.append(self._launch(number))
        except BaseException:  # no more processes or memory, or Ctrl-C: all or none
            started, self._workers = self._workers, []
            for worker in started:
                worker.release()
            raise

    def _launch(self, number: int) -> _Worker:
        context: Any = multiprocessing.get_context(self.settings.start_method)
        mine, theirs = socket.socketpair()
        faults = os.memfd_create("stoker-faults", os.MFD_CLOEXEC)
        forks = self.settings.start_method == "fork"
        others = [mine, *(w.channel._socket for w in self._workers if not w.gone)] if forks else []
        process = context.Process(
            target=work, name=f"stoker-worker-{number}", daemon=True,
            args=(theirs, self._producers, self.settings.loader(), Descriptor(faults), os.getpid(), others),
        )  # fmt: skip
        with theirs, warnings.catch_warnings():
            # Newer Pythons warn of a fork beside threads: the child runs the source alone, and none of ours.
            warnings.simplefilter("ignore", DeprecationWarning)
            try:
                process.start()
            except BaseException:
                mine.close()
                os.close(faults)
                raise
        return _Worker(number, process, Channel(mine), faults)

    def close(self) -> None:
        """End all processes; idempotent. One that is in the user's code has a second to return, then it is killed."""
        self._closed = True
        if os.getpid() != self._pid:  # a child of the process they belong to
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
        """Ask for something; see :meth:`result`. A producer that is stateful answers in the order of requests."""
        self.start()
        task = Task(next(self._ids), producer, request)
        self._give(task)
        return task

    def _give(self, task: Task) -> None:
        if task.producer in self._stateful:
            worker = self._workers[task.producer % self.count]
        else:
            worker = min(self._workers, key=lambda w: (w.gone, len(w.tasks), w.number))
        block = worker.vacant()
        task.worker = worker
        worker.tasks[task.id] = task
        worker.outbox.append(Message((task.id, task.producer, task.request, block)))
        worker.flush()

    def drop(self, task: Task) -> None:
        """Nobody will ask for its result."""
        wanted, task.wanted = task.wanted, False
        if wanted and task.answer is not None and task.lease is None and task.worker is not None:
            good, _, block = task.answer
            if good and block is not None:
                task.worker.free.append(block)

    def result(self, task: Task) -> Any:
        """What was made, with arrays that lie in shared memory for as long as somebody has them; waits for it.

        Raises:
            WorkerDied: its process ended; a new one takes its place.
            StateError: the pipeline was closed meanwhile.
            Exception: what the producer raised, with the worker's traceback as its cause.
        """
        while task.answer is None:
            if self._closed:
                raise StateError("the pipeline was closed while a source's processes were awaited")
            self.wait()
        good, made, block = task.answer
        worker = task.worker
        assert worker is not None
        if not good:
            raise _as_error(made)
        if block is None:
            return read(made, None)
        if task.lease is None:
            task.lease = Lease(worker.blocks[block])
        worker.leased[block] = weakref.ref(task.lease)
        return read(made, np.asarray(task.lease))

    def ready(self, task: Task) -> bool:
        """Whether :meth:`result` would not have to wait."""
        if task.answer is None and not self._closed:
            self.wait(0)
        return task.answer is not None

    def wait(self, timeout_s: float = _POLL_S) -> None:
        """Take what has come, or wait for something for a moment."""
        for worker in self._workers:
            worker.flush()
            worker.take()  # both only have to do what Ctrl-C has left
        by_channel: dict[Any, _Worker] = {w.channel: w for w in self._workers if not w.gone}
        for channel in wait([*by_channel], timeout_s):
            try:
                channel.receive()  # type: ignore[union-attr]
            except Closed:
                by_channel[channel].gone = True
            by_channel[channel].take()
        for worker in [w for w in self._workers if w.gone]:
            if self._closed:
                return
            self._replace(worker)

    def _replace(self, dead: _Worker) -> None:
        """Answer what the dead process was at, and let a new one do the rest."""
        text = f"a worker process (number {dead.number}, process {dead.process.pid}) {dead.ended()}"
        error = WorkerDied(f"{text} while the source ran in it")
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


def _as_error(made: Any) -> BaseException:
    if not isinstance(made, Failure):
        return made  # type: ignore[no-any-return]
    error: Any = None
    if made.pickled is not None:
        with contextlib.suppress(Exception):  # a class that only the worker can make again: its name and text are there
            error = pickle.loads(made.pickled)
    if not isinstance(error, Exception):  # SystemExit ends the worker's work, not this process
        error = DataError(f"{made.name}: {made.text}")
    error.__cause__ = WorkerTraceback(made.traceback)
    return error  # type: ignore[no-any-return]
