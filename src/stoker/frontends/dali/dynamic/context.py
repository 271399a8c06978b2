# SPDX-License-Identifier: Apache-2.0
"""Modes of evaluation, contexts and threads of the imperative mode."""

from __future__ import annotations

import os
import threading
from enum import Enum, auto
from typing import Any

from ....contract.errors import ArgumentError, StateError
from ....contract.text import brief
from ....contract.whole_number import as_whole_number
from ....settings import default_threads
from ...planned_call import RowThreads
from ..errors import error_class
from .checkpoint import Checkpoint
from .devices import Device, count_gpus, remove_last
from .streams import Stream, get_default_stream
from .streams import stream as _stream


class EvalMode(Enum):
    """Mode of evaluation, for ``with``. Operators compute before they return in every mode."""

    deferred = auto()
    eager = auto()
    sync_cpu = auto()
    sync_full = auto()
    default = eager

    def __enter__(self) -> EvalMode:
        _of_thread.modes.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _of_thread.modes.pop()

    @staticmethod
    def current() -> EvalMode:
        """Return the mode of the innermost block of this thread."""
        return _of_thread.modes[-1]


class EvalContext:
    """Threads, GPU and stream of operators and readers, for ``with``. A context is active in one thread at a time.

    Attributes:
        num_threads: threads that divide the rows of an operator's batch on the CPU, and threads of readers.
        thread_pool: the pool of these threads.
        device_id: number of the GPU; None for the CPU.
        cuda_stream: the stream whose work operators on the GPU wait for: the context's, the thread's, the default one,
            or else a new one. None without a GPU.
        checkpoint: a checkpoint of the context's own.
    """

    def __init__(self, *, num_threads: int | None = None, device_id: int | None = None, cuda_stream: Any = None,
                 thread_pool: ThreadPool | None = None) -> None:  # fmt: skip
        """Take the settings.

        Args:
            num_threads: number of threads of a pool of the context's own; by default that of `get_num_threads`.
            device_id: number of the GPU; by default the current device.
            cuda_stream: a stream; see `Stream`.
            thread_pool: a pool to share.
        """
        self._device = Device.current() if device_id is None else Device("gpu", device_id)
        if thread_pool is not None and num_threads is not None:
            raise error_class(ArgumentError)("`EvalContext`: expected `num_threads` or `thread_pool`, got both")
        if thread_pool is not None and thread_pool.device_id not in (None, self.device_id):
            text = f"expected a thread pool of GPU {self.device_id}, got one of {thread_pool.device_id}"
            raise error_class(ArgumentError)(f"`EvalContext`: {text}")
        if num_threads is not None:
            thread_pool = ThreadPool(num_threads, device_id=self.device_id)
        self._pool = thread_pool
        self._stream = _stream(stream=cuda_stream, device_id=device_id)
        self._own_stream: Stream | None = None
        self._active = threading.RLock()
        self._checkpoint = Checkpoint()

    @property
    def thread_pool(self) -> ThreadPool:
        return self._pool or _default_pool()

    @property
    def num_threads(self) -> int:
        return self.thread_pool.num_threads

    @property
    def device_id(self) -> int | None:
        return self._device.device_id

    @property
    def checkpoint(self) -> Checkpoint:
        return self._checkpoint

    @property
    def cuda_stream(self) -> Stream | None:
        found = self.stream_to_follow
        if found is None and self.device_id is not None:
            self._own_stream = self._own_stream or Stream(device_id=self.device_id)
            found = self._own_stream
        return found

    @property
    def stream_to_follow(self) -> Stream | None:
        """Return the stream that the user has set for this context; None without one."""
        if self._stream is not None or self.device_id is None:
            return self._stream
        if self is not EvalContext.default() and EvalContext.default()._stream is not None:
            inherited = EvalContext.default()._stream
            if inherited is not None and inherited.device_id == self.device_id:
                return inherited
        return get_default_stream(self.device_id)

    @staticmethod
    def current() -> EvalContext:
        """Return the innermost context of this thread, or its default."""
        return _of_thread.contexts[-1] if _of_thread.contexts else EvalContext.default()

    @staticmethod
    def default() -> EvalContext:
        """Return the context of this thread, and of the default device, outside of all blocks."""
        kind = "gpu" if count_gpus() else "cpu"
        number = Device.default_device_id(kind)
        if number not in _of_thread.defaults:
            _of_thread.defaults[number] = EvalContext(device_id=number)
        return _of_thread.defaults[number]

    def evaluate_all(self) -> None:
        """Return immediately: every operator has computed before it returned."""

    def cached_results(self, invocation: Any) -> None:
        """Return None: results are not cached.

        Args:
            invocation: has no effect.
        """

    def cache_results(self, invocation: Any, results: Any) -> None:
        """Return immediately: results are not cached.

        Args:
            invocation: has no effect.
            results: has no effect.
        """

    def __enter__(self) -> EvalContext:
        if not self._active.acquire(blocking=False):
            raise error_class(StateError)("`EvalContext`: expected a context that no other thread has entered")
        _of_thread.contexts.append(self)
        self._device.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._device.__exit__()
        remove_last(_of_thread.contexts, self)
        self._active.release()


_CURRENT = -1


class ThreadPool:
    """Threads that contexts share. They start with the first batch that they divide.

    Attributes:
        num_threads: number of threads.
        device_id: number of the GPU of contexts with the pool; None: any.
        rows: the threads, as calls of operators use them.
    """

    def __init__(self, num_threads: int | None = None, *, device_id: int | None = _CURRENT) -> None:
        """Take the number.

        Args:
            num_threads: number of threads; by default that of `get_num_threads`.
            device_id: number of the GPU; by default that of the current device.
        """
        self.rows = RowThreads(get_num_threads() if num_threads is None else _threads(num_threads))
        self._device_id = Device.current().device_id if device_id == _CURRENT else device_id

    @property
    def num_threads(self) -> int:
        return self.rows.num_threads

    @property
    def device_id(self) -> int | None:
        return self._device_id


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.modes = [EvalMode.default]
        self.contexts: list[EvalContext] = []
        self.defaults: dict[int | None, EvalContext] = {}


_of_thread = _OfThread()
_number_of_threads: int | None = None
_shared_pool: ThreadPool | None = None
_sharing = threading.Lock()


def _default_pool() -> ThreadPool:
    """Return the pool of contexts without one, which has as many threads as `get_num_threads` says."""
    global _shared_pool
    with _sharing:
        if _shared_pool is None or _shared_pool.num_threads != get_num_threads():
            _shared_pool = ThreadPool(device_id=None)
        return _shared_pool


def set_current_stream(cuda_stream: Any, /) -> None:
    """Set the stream of this thread's contexts on the current GPU.

    Args:
        cuda_stream: a stream of the current GPU, as for `Stream`; None: that of `get_default_stream`, or a new one.
    """
    context = EvalContext.default()
    context._stream = _stream(stream=cuda_stream, device_id=context.device_id)


def get_current_stream() -> Stream | None:
    """Return the stream of this thread's default context; None without a GPU."""
    return EvalContext.default().cuda_stream


def _threads(n: Any) -> int:
    number = as_whole_number(n)
    if number is None or not 1 <= number <= 4096:
        raise error_class(ArgumentError)(f"expected 1 to 4096 threads, got {brief(n)}")
    return number


def get_num_threads() -> int:
    """Return the number of threads of contexts without a number: as set, or ``DALI_NUM_THREADS``, or that of the
    process's processors.
    """
    if _number_of_threads is not None:
        return _number_of_threads
    given = os.environ.get("DALI_NUM_THREADS")
    return _threads(int(given) if given.isdecimal() else given) if given else default_threads()


def set_num_threads(n: int | None) -> None:
    """Set the number of threads of contexts without a number.

    Args:
        n: the number; None: the default.
    """
    global _number_of_threads
    _number_of_threads = None if n is None else _threads(n)
