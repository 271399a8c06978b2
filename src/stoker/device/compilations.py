# SPDX-License-Identifier: Apache-2.0
"""Sources that are compiled beside each other, so that a plan waits for its longest kernel and not for their sum."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future


class Compilations:
    """Compiles every source once, several at a time.

    Threads are enough: NVRTC lets go of the interpreter and works for several callers at once. A thread ends with its
    source, so that none is left when a plan is made; what nobody has waited for when the process ends is not begun.

    Args:
        compiled: the machine code of a source; called by threads.
        at_once: how many of its calls may run at a time.
    """

    def __init__(self, compiled: Callable[[str], bytes], at_once: int) -> None:
        self._compiled = compiled
        self._free = threading.BoundedSemaphore(at_once)
        self._begun: dict[str, Future[bytes]] = {}

    def begin(self, source: str) -> None:
        """Let ``source`` be compiled, unless it is already."""
        future: Future[bytes] = Future()
        if self._begun.setdefault(source, future) is future:
            threading.Thread(target=self._compile, args=(source, future), name="stoker-nvrtc").start()

    def result(self, source: str) -> bytes:
        """The machine code of ``source``, once it is there. Raises what compiling it raised, also when asked again."""
        self.begin(source)
        return self._begun[source].result()

    def _compile(self, source: str, future: Future[bytes]) -> None:
        with self._free:
            if not threading.main_thread().is_alive():
                future.cancel()
                return
            try:
                future.set_result(self._compiled(source))
            except BaseException as error:  # noqa: BLE001 - the thread that waits gets it
                future.set_exception(error)
