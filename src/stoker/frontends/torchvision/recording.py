# SPDX-License-Identifier: Apache-2.0
"""Scope of recording: images and tensors are lazy only while a DataLoader fetches a batch.

Outside of this scope Pillow, torch and torchvision are unchanged. In the main process the scope belongs to the thread
that fetches. In a worker process, which does nothing else, it includes the threads of the data set.

Lazy objects are tracked, so that those which a data set keeps become plain (`loader/loader.py`).
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any


class _ThreadState(threading.local):
    fetches = 0  # nested fetches of this thread
    created: list[weakref.ref[Any]] | None = None  # lazy objects of the current fetch or message


_thread = _ThreadState()
_is_worker = False
_fetches_of_worker = 0
_created_by_threads: list[weakref.ref[Any]] = []  # lazy objects of a worker's other threads


def is_on() -> bool:
    """Return whether new images and tensors of this thread are lazy."""
    return _thread.fetches > 0 or _fetches_of_worker > 0


def is_worker() -> bool:
    """Return whether this process is a worker."""
    return _is_worker


def enter_worker() -> None:
    """Extend the scope to all threads of this process, which is a worker."""
    global _is_worker
    _is_worker = True


def track(x: Any) -> None:
    """Track a new lazy object."""
    created = _thread.created
    if created is not None:
        created.append(weakref.ref(x))
    elif _fetches_of_worker:
        _created_by_threads.append(weakref.ref(x))


@contextlib.contextmanager
def tracking() -> Iterator[list[weakref.ref[Any]]]:
    """Return a context manager that gives the list of lazy objects that this thread creates within it."""
    before, _thread.created = _thread.created, []
    try:
        yield _thread.created
    finally:
        _thread.created = before


def take_created() -> list[weakref.ref[Any]]:
    """Return the lazy objects that were created since the last call, and forget them."""
    global _created_by_threads
    own, _thread.created = _thread.created or [], []
    threads, _created_by_threads = _created_by_threads, []
    return own + threads


def _begin_child() -> None:
    """Reset the state in a new process: the fetches in flight are the parent's."""
    global _is_worker, _fetches_of_worker
    _thread.created = None
    _created_by_threads.clear()
    _thread.fetches = _fetches_of_worker = 0
    _is_worker = False


os.register_at_fork(after_in_child=_begin_child)


@contextlib.contextmanager
def fetching() -> Iterator[None]:
    """Return a context manager around the fetch of one batch."""
    global _fetches_of_worker
    _thread.fetches += 1
    _fetches_of_worker += _is_worker
    try:
        yield
    finally:
        _thread.fetches -= 1
        _fetches_of_worker -= _is_worker
