# SPDX-License-Identifier: Apache-2.0
"""Batches with a damaged file are made again, with that file on plain Pillow, from the random state of their start.

A file is decoded after the data set's ``__getitem__`` has returned. If that fails, the sample's own error handling must
still see it: the batch is fetched again, the damaged file is now decoded when it is opened, and a ``try`` around the
transforms, or a retry with another index, acts as it does without Stoker.
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

from ...contract.errors import DataError


class Origin(NamedTuple):
    """What a batch was fetched for, and the random states when it began.

    ``worker`` says by whom: its number, of how many, its seed, and how many threads torch had there.
    """

    index: Any
    states: tuple[Any, Any, Any]
    worker: tuple[int, int, int, int] | None = None


class Damaged(DataError, OSError):
    """A file that was recorded cannot be decoded. Caught and answered by fetching the batch again."""


class _Now(threading.local):
    origin: Origin | None = None


_now = _Now()
_damaged: set[bytes] = set()


def origin() -> Origin | None:
    """Of the batch that this thread is fetching."""
    return _now.origin


def begin(index: Any) -> Origin:
    """A batch begins."""
    info: Any = torch.utils.data.get_worker_info()
    whose = None if info is None else (info.id, info.num_workers, info.seed, torch.get_num_threads())
    _now.origin = states()._replace(index=index, worker=whose)
    return _now.origin


def end() -> None:
    """No batch is being fetched."""
    _now.origin = None


def go_back(origin: Origin) -> None:
    """Draw again what has been drawn since the batch began."""
    random.setstate(origin.states[0])
    np.random.set_state(origin.states[1])
    torch.set_rng_state(torch.from_numpy(origin.states[2].copy()))


@contextlib.contextmanager
def as_worker(origin: Origin, dataset: Any) -> Iterator[None]:
    """Within, ``get_worker_info()`` is what it was where the batch was fetched first, but for the data set's copy.

    torch has as many threads as there, which its sums depend on (`sums.py`).
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


def states() -> Origin:
    """Where the random streams stand, for :func:`go_back`."""
    # Not as a tensor, which would travel in a shared memory file of its own.
    return Origin(None, (random.getstate(), np.random.get_state(), torch.get_rng_state().numpy()))


def is_any_damaged() -> bool:
    """Whether any file could not be decoded before."""
    return bool(_damaged)


def is_damaged(data: Any) -> bool:
    """Whether a file of these bytes could not be decoded before."""
    return is_any_damaged() and _name(data) in _damaged


def remember(data: Any) -> bool:
    """From now on files of these bytes are opened by Pillow; False if they were already."""
    name = _name(data)
    if name in _damaged:
        return False
    _damaged.add(name)
    return True


def forget() -> None:
    """Forget all damaged files."""
    _damaged.clear()


def _name(data: Any) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
