# SPDX-License-Identifier: Apache-2.0
"""Memory of clips: used again only when no array refers to it, bounded, and safe with threads and collectors."""

from __future__ import annotations

import gc
import threading

import numpy as np

from stoker.video.memory import ALIGNMENT, LEAST_BYTES, MAX_KEPT_BYTES, ClipMemory

SHAPE = (4, 512, 512, 3)


def kept(memory: ClipMemory) -> int:
    return sum(map(len, memory._kept)) + sum(map(len, memory._returned))


def test_memory_is_used_again_after_its_last_array() -> None:
    memory = ClipMemory()
    first = memory.array(SHAPE)
    assert first.shape == SHAPE and first.dtype == np.uint8 and first.flags.writeable and first.flags.c_contiguous
    first[:] = 7
    address, part = first.ctypes.data, first[2:, ::2]
    del first
    second = memory.array(SHAPE)
    assert second.ctypes.data != address
    second[:] = 9
    assert (part == 7).all()
    del part
    gc.collect()
    assert memory.array(SHAPE).ctypes.data == address
    other = memory.array((5, *SHAPE[1:]))
    assert other.shape == (5, *SHAPE[1:]) and (second == 9).all()


def test_memory_that_is_kept_is_bounded() -> None:
    memory = ClipMemory()
    arrays = [memory.array((64 << 20,)) for _ in range(8)]  # never written, so not resident
    del arrays
    assert 0 < kept(memory) <= MAX_KEPT_BYTES
    memory.clear()
    assert kept(memory) == 0
    for size in (LEAST_BYTES - 1, MAX_KEPT_BYTES + 1, 0):
        assert memory.array((size,)).flags.owndata
    assert kept(memory) == 0


def test_threads_never_share_memory() -> None:
    memory, wrong = ClipMemory(), list[int]()

    def work(number: int) -> None:
        for _ in range(60):
            array = memory.array((LEAST_BYTES,))
            array[::4096] = number
            if not (array[::4096] == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and kept(memory) <= 8 * LEAST_BYTES


def test_a_collector_inside_a_call_does_not_wait() -> None:
    memory = ClipMemory()
    array = memory.array(SHAPE)
    with memory._lock:
        del array  # its destructor runs here, in a thread that holds the lock
    assert kept(memory) == int(np.prod(SHAPE)) + ALIGNMENT
    assert memory.array(SHAPE).shape == SHAPE
