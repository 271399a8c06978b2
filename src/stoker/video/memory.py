# SPDX-License-Identifier: Apache-2.0
"""Memory of clips that is used again: the first write to fresh pages costs as much as the conversion of a frame."""

from __future__ import annotations

import os
import threading
from collections import deque

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
ALIGNMENT = 64  # of an array that is kept: the conversion of frames stores whole cache lines past the caches
LEAST_BYTES, MAX_KEPT_BYTES = 1 << 20, 256 << 20  # of an array that is kept, and of all that are kept


class _Lease:
    """Owner of an array's memory. The memory returns to the pool with the last array that refers to the lease."""

    def __init__(self, pool: ClipMemory, memory: Bytes, shape: tuple[int, ...]) -> None:
        self._pool, self._memory = pool, memory
        address = memory.ctypes.data
        self.__array_interface__ = {
            "version": 3, "shape": shape, "typestr": "|u1", "strides": None,
            "data": (address + -address % ALIGNMENT, False),
        }  # fmt: skip

    def __del__(self) -> None:
        self._pool.release(self._memory)


class ClipMemory:
    """Arrays of bytes whose memory is kept for the next array of the same size. Threads may use it concurrently."""

    def __init__(self) -> None:
        self._returned: deque[Bytes] = deque()  # by destructors that could not have the lock
        self._lock = threading.Lock()
        self._kept: list[Bytes] = []

    def reset(self) -> None:
        """Forget everything, in a child process, where another thread may have held the lock."""
        self._returned, self._lock, self._kept = deque(), threading.Lock(), []

    def release(self, memory: Bytes) -> None:
        """Take memory that no array uses any more. The collector may run in a thread that holds the lock."""
        self._returned.append(memory)
        if self._lock.acquire(blocking=False):  # else the next call takes it
            try:
                self._collect()
            finally:
                self._lock.release()

    def clear(self) -> None:
        """Release all memory that is kept."""
        with self._lock:
            self._collect()
            self._kept.clear()

    def _collect(self) -> None:
        """Keep what was returned, up to the limit. The caller has the lock."""
        while self._returned:
            self._kept.append(self._returned.popleft())
        while sum(map(len, self._kept)) > MAX_KEPT_BYTES:
            del self._kept[0]

    def array(self, shape: tuple[int, ...]) -> Bytes:
        """Return an array whose contents are undefined."""
        size = int(np.prod(shape, dtype=np.int64))
        if not LEAST_BYTES <= size <= MAX_KEPT_BYTES:
            return np.empty(shape, np.uint8)
        with self._lock:
            self._collect()
            room = size + ALIGNMENT
            at = next((i for i in reversed(range(len(self._kept))) if len(self._kept[i]) == room), None)
            memory = np.empty(room, np.uint8) if at is None else self._kept.pop(at)
        return np.asarray(_Lease(self, memory, shape))


MEMORY = ClipMemory()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=MEMORY.reset)
