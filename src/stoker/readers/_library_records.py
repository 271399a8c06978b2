# SPDX-License-Identifier: Apache-2.0
"""Records that an optional library reads: threads call it as soon as the rows of a batch are known."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from ..contract.errors import ArgumentError
from ..contract.storage import Bools
from ..settings import default_threads
from ._fetching import Asked, RequestedStorage

_MOST_THREADS = 8
_LEAST_PER_THREAD = 8  # records; a call of a library has a fixed cost


class RequestThreads:
    """Threads that serve the requests of a storage. The first request starts them.

    Args:
        name: prefix of the threads' names.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._closed = False
        self.count = min(_MOST_THREADS, default_threads())

    def submit(self, function: Callable[..., None], *arguments: Any, futures: Sequence[Future[Any]]) -> None:
        """Call a function on a thread. After :meth:`close`, cancel the futures that the function would have set."""
        with self._lock:
            if not self._closed:
                if self._pool is None:
                    self._pool = ThreadPoolExecutor(self.count, thread_name_prefix=self._name)
                self._pool.submit(function, *arguments)
                return
        for future in futures:
            future.cancel()

    def close(self) -> None:
        """Wait for the calls in flight and end the threads; idempotent."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(cancel_futures=True)


class LibraryStorage(RequestedStorage, ABC):
    """Records that a library reads, several per call. A record that the library cannot read fails only its own row.

    Args:
        name: prefix of the threads' names.
        kind: description of the data set, for messages.
    """

    def __init__(self, name: str, kind: str) -> None:
        super().__init__()
        self._kind = kind
        self._threads = RequestThreads(name)

    @abstractmethod
    def read(self, records: Sequence[int]) -> Sequence[Any]:
        """Read records on the caller's thread. Several threads call this.

        Args:
            records: numbers of the records, in rising order.

        Raises:
            Exception: a record cannot be read. If there are several records, each of them is read alone then.
        """

    def absent(self) -> Bools | None:
        return None  # known only when a record is read

    def joined(self, others: Sequence[Any]) -> LibraryStorage:
        raise ArgumentError(f"expected readers that can be joined: give {self._kind} to one reader")

    def _begin(self, records: Sequence[int]) -> Asked:
        asked: Asked = {record: Future() for record in records}
        wanted = sorted(asked)
        size = max(_LEAST_PER_THREAD, -(-len(wanted) // self._threads.count))
        for begin in range(0, len(wanted), size):
            part = {record: asked[record] for record in wanted[begin : begin + size]}
            self._threads.submit(self._serve, part, futures=list(part.values()))
        return asked

    def _serve(self, part: Asked) -> None:
        wanted = {record: future for record, future in part.items() if future.set_running_or_notify_cancel()}
        try:
            found = self.read(list(wanted)) if wanted else []
        except Exception as error:  # noqa: BLE001 - a library may raise anything; the rows carry it
            if len(wanted) == 1:
                next(iter(wanted.values())).set_exception(error)
                return
            for record, future in wanted.items():
                try:
                    future.set_result(self.read([record])[0])
                except Exception as alone:  # noqa: BLE001 - the row carries it
                    future.set_exception(alone)
            return
        for future, value in zip(wanted.values(), found, strict=True):
            future.set_result(value)

    def _checked(self, record: int, content: Any) -> Any:
        return content

    def close(self) -> None:
        self.cancel()
        self._threads.close()
