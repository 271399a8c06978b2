# SPDX-License-Identifier: Apache-2.0
"""Concurrent compilation of sources, so that a plan waits for its slowest kernel and not for the sum of all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from ..contract.errors import ResourceError
from ..contract.thread_start import start_thread


class CompilationPool:
    """Pool of threads that compile every source once, several at a time.

    Threads are sufficient: NVRTC releases the GIL and supports concurrent callers. A thread ends with its source, so
    that none is left after planning. Sources that no caller waits for at the end are not begun.

    Callers pass the function that returns the machine code of a source, which threads call: a pool that kept it would
    be in a cycle with the function's object.

    Args:
        at_once: maximum number of concurrent calls.
    """

    def __init__(self, at_once: int) -> None:
        self._free = threading.BoundedSemaphore(at_once)
        self._begun: dict[str, Future[bytes]] = {}

    def begin(self, source: str, compiled: Callable[[str], bytes]) -> None:
        """Begin to compile ``source``, unless it was begun before."""
        future: Future[bytes] = Future()
        if self._begun.setdefault(source, future) is future:
            try:
                arguments = (source, compiled, future)
                start_thread(threading.Thread(target=self._compile, args=arguments, name="stoker-nvrtc"))
            except ResourceError as error:
                future.set_exception(error)

    def result(self, source: str, compiled: Callable[[str], bytes]) -> bytes:
        """Wait for the machine code of ``source``. A compilation error is raised by every call for its source."""
        self.begin(source, compiled)
        return self._begun[source].result()

    def _compile(self, source: str, compiled: Callable[[str], bytes], future: Future[bytes]) -> None:
        with self._free:
            if not threading.main_thread().is_alive():
                future.cancel()
                return
            try:
                future.set_result(compiled(source))
            except BaseException as error:  # noqa: BLE001 - the thread that waits gets it
                future.set_exception(error)
