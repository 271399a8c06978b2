# SPDX-License-Identifier: Apache-2.0
"""Retry of batches with a damaged file: plain Pillow decodes the file, from the random state of the batch's start.

A file is decoded after the data set's ``__getitem__`` has returned. If decoding fails, the sample's own error handling
must still see the error. Therefore the batch is fetched again, and the damaged file is decoded when it is opened. A
``try`` around the transforms, or a retry with another index, then acts as without Stoker.
"""

from __future__ import annotations

import contextlib
import hashlib
import random
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data._utils import worker

from ....contract.errors import DataError


class Origin(NamedTuple):
    """Origin of a batch: its request, and the random states at its beginning.

    ``worker`` identifies the worker that fetched it: number, number of workers, seed, and torch's number of threads
    there.
    """

    index: Any
    states: tuple[Any, Any, Any]
    worker: tuple[int, int, int, int] | None = None


class Damaged(DataError, OSError):
    """A recorded file cannot be decoded. The loader catches this error and fetches the batch again."""


class _ThreadState(threading.local):
    origin: Origin | None = None


_thread = _ThreadState()
_damaged: set[bytes] = set()


def current_origin() -> Origin | None:
    """Return the origin of the batch that this thread is fetching."""
    return _thread.origin


def begin_batch(index: Any) -> Origin:
    """Record the origin of a batch that this thread begins to fetch."""
    info: Any = torch.utils.data.get_worker_info()
    whose = None if info is None else (info.id, info.num_workers, info.seed, torch.get_num_threads())
    _thread.origin = random_states()._replace(index=index, worker=whose)
    return _thread.origin


def end_batch() -> None:
    """End the batch of this thread."""
    _thread.origin = None


def restore_random_states(origin: Origin) -> None:
    """Restore the random states of a batch's beginning, so that the same numbers are drawn again."""
    random.setstate(origin.states[0])
    np.random.set_state(origin.states[1])
    torch.set_rng_state(torch.from_numpy(origin.states[2].copy()))


@contextlib.contextmanager
def worker_info_of(origin: Origin, dataset: Any) -> Iterator[None]:
    """Make ``get_worker_info()`` return what it returned where the batch was first fetched, except for ``dataset``.

    torch also gets the number of threads that it had there, because its sums depend on it (`reference/sums.py`).
    """
    was, threads_were = worker._worker_info, torch.get_num_threads()
    if origin.worker is not None:
        number, count, seed, threads = origin.worker
        info: Any = worker.WorkerInfo
        worker._worker_info = info(id=number, num_workers=count, seed=seed, dataset=dataset)
        torch.set_num_threads(threads)
    try:
        yield
    finally:
        worker._worker_info = was
        if origin.worker is not None:
            torch.set_num_threads(threads_were)


def random_states() -> Origin:
    """Return the random states, for :func:`restore_random_states`."""
    # As an array: a tensor would be sent in a shared-memory file of its own.
    return Origin(None, (random.getstate(), np.random.get_state(), torch.get_rng_state().numpy()))


def has_damaged() -> bool:
    """Return whether any file could not be decoded so far."""
    return bool(_damaged)


def is_damaged(data: Any) -> bool:
    """Return whether a file of these bytes could not be decoded before."""
    return has_damaged() and _digest(data) in _damaged


def remember_damaged(data: Any) -> bool:
    """Let Pillow open files of these bytes from now on; return False if it already does."""
    name = _digest(data)
    if name in _damaged:
        return False
    _damaged.add(name)
    return True


def forget_damaged() -> None:
    """Forget all damaged files."""
    _damaged.clear()


def _digest(data: Any) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
