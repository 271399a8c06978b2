# SPDX-License-Identifier: Apache-2.0
"""File references: workers send paths and identities, the main process reads the bytes.

Copying a file into shared memory costs a worker more than all its other work on the file, and the bytes are copied once
more on arrival. A reference is the file's identity (device, inode, size, time of the last change) with its path (see
the native header that declares it). The reader checks that the file is still the same.

A data set may delete or overwrite a file after opening it. Therefore a worker keeps duplicated descriptors of a batch's
files until the batch has been fetched, and then checks each path. A file that was moved or deleted is copied from its
descriptor. If a file was written to, the worker fetches the batch again. The reader detects later changes, and the main
process then fetches the batch again. After any such event no process sends references: workers copy files while they
are open.
"""

from __future__ import annotations

import io
import os
import resource
import threading
import weakref
from collections import deque
from typing import Any, Protocol

import numpy as np

from ....native import _native
from .segment import Bytes

_SETTLED_S = 2.0  # younger files are copied: their writer may still be changing files here


class StaleFileRef(OSError):
    """A referenced file is gone, or has changed."""


class FileRefHolder(Protocol):
    """Object with a file reference in place of the file's bytes."""

    @property
    def ref(self) -> bytes | None:
        """Return the reference, as long as the bytes are not held."""

    @property
    def data(self) -> Bytes:
        """Return the bytes."""

    def load_from(self, fd: int) -> bool:
        """Replace the reference by the bytes of the file, open as ``fd``; return False if the file was written to."""

    def hold_privately(self) -> None:
        """Move the bytes to private memory, if they can be read."""


_BATCHES_IN_FLIGHT = 2  # batches that may still be in flight when another one is fetched
_MAX_OPEN = 256  # descriptors that are kept open, if the process's limit is at least four times as high


class _ThreadState(threading.local):
    is_referencing = False
    has_stale_ref = False

    def __init__(self) -> None:
        # the latest files of this batch, with descriptors
        self.open_files: deque[tuple[weakref.ref[Any], int]] = deque()
        self.holders: list[weakref.ref[Any]] = []  # all of this batch
        self.earlier: deque[list[weakref.ref[Any]]] = deque()


_thread = _ThreadState()
_is_worker = False
_max_open = _MAX_OPEN
_is_stopped = False
_flags: list[Any] = []  # one per loader with workers; the first number, in shared memory, says whether to stop


def register_flag(flag: Any) -> Any:
    """Register the flag of a loader whose workers are about to start: an int64 tensor in shared memory."""
    _flags.append(flag)
    flag[0] = int(_is_stopped)
    return flag


def unregister_flag(flag: Any) -> None:
    """Drop the flag of workers that have ended. If one of them has stopped references, they stay stopped."""
    if any(known is flag for known in _flags) and int(flag[0]):
        stop()
    _flags[:] = [known for known in _flags if known is not flag]


def enter_worker(flag: Any) -> None:
    """Send references from now on, until ``flag`` is set; called in a worker."""
    global _is_worker, _max_open
    _is_worker = True
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    _max_open = _MAX_OPEN if limit == resource.RLIM_INFINITY else max(1, min(_MAX_OPEN, limit // 4))
    _flags[:] = [flag.numpy()]


def stop() -> None:
    """Stop all processes from sending references."""
    _set(stopped=True)


def resume() -> None:
    """Let processes send references again."""
    _set(stopped=False)


def _set(*, stopped: bool) -> None:
    global _is_stopped
    _is_stopped = stopped
    for flag in _flags:
        flag[0] = int(stopped)


def begin_batch() -> None:
    """Begin a batch on this thread, which must be able to fetch it again."""
    _close_all()
    _thread.is_referencing = _is_worker and not _flags[0][0]
    _thread.has_stale_ref = False


def copy_moved_files() -> None:
    """Copy the files that no longer lie at their paths, before the batch is sent, and close all descriptors."""
    while _thread.open_files:
        _release_first()


def _release_first() -> None:
    """Close the first descriptor that is kept open; copy its file before if the path no longer leads to it."""
    reference, fd = _thread.open_files.popleft()
    try:
        holder: FileRefHolder | None = reference()
        ref = None if holder is None else holder.ref
        if holder is not None and ref is not None and not _native.recipe.is_file_ref_unchanged(ref):
            stop()
            _thread.has_stale_ref |= not holder.load_from(fd)
    finally:
        os.close(fd)


def _close_all() -> None:
    while _thread.open_files:
        os.close(_thread.open_files.popleft()[1])


def end_batch() -> None:
    """End the batch of this thread, fetched or not.

    Holders of an earlier batch that still exist are images that the data set keeps. They read their files now, so that
    they stay as they are if the files change.
    """
    _close_all()
    _thread.is_referencing = _thread.has_stale_ref = False
    if not _thread.holders and not _thread.earlier:
        return
    _thread.earlier.append(_thread.holders)
    _thread.holders = []
    if len(_thread.earlier) > _BATCHES_IN_FLIGHT:
        for reference in _thread.earlier.popleft():
            kept = reference()
            if kept is not None:
                kept.hold_privately()


def has_stale_ref() -> bool:
    """Return whether a referenced file has changed, or could not be read, since this thread's :func:`begin_batch`."""
    return _thread.has_stale_ref


def is_referencing() -> bool:
    """Return whether this thread fetches a batch with file references."""
    return _thread.is_referencing


def make_ref(file: io.BufferedReader) -> bytes | None:
    """Return the reference of an open file.

    None if the file has no path, is no regular file, is cut short, or was written a moment ago.
    """
    path = file.raw.name if hasattr(file.raw, "name") else None
    if type(path) is str:
        path = os.fsencode(path)
    if type(path) is not bytes:
        return None
    if path[:1] != b"/":
        path = os.path.join(os.getcwdb(), path)
    return _native.recipe.make_file_ref(file.fileno(), path, _SETTLED_S)


def keep_open(holder: FileRefHolder, fd: int) -> None:
    """Keep a descriptor of the referenced file, which is open as ``fd``, until the batch has been fetched."""
    reference = weakref.ref(holder)
    _thread.holders.append(reference)
    if len(_thread.open_files) >= _max_open:
        _release_first()
    try:
        own = os.dup(fd)
    except OSError:  # too many open files: if this file goes, the batch is fetched again
        return
    _thread.open_files.append((reference, own))


def read_if_unchanged(ref: bytes) -> Bytes | None:
    """Return the bytes of a referenced file; None if the file has changed or is gone."""
    try:
        return np.frombuffer(_native.recipe.read_file_ref(ref), np.uint8)
    except OSError:
        return None


def read(ref: bytes) -> Bytes:
    """Return the bytes of a referenced file.

    Raises:
        StaleFileRef: the file has changed, or is gone.
    """
    try:
        return np.frombuffer(_native.recipe.read_file_ref(ref), np.uint8)
    except OSError as error:
        stop()
        for reference, fd in _thread.open_files:
            holder: FileRefHolder | None = reference()
            if holder is not None and holder.ref == ref and holder.load_from(fd):
                return holder.data
        _thread.has_stale_ref = True
        raise StaleFileRef(str(error)) from error


def pack_refs(refs: list[bytes]) -> Any:
    """Return references of several files as an array ``(files, bytes)``, padded with zeros."""
    length = max(map(len, refs))
    return np.frombuffer(b"".join(t.ljust(length, b"\0") for t in refs), np.uint8).reshape(len(refs), length)
