# SPDX-License-Identifier: Apache-2.0
"""Files that a worker tells of instead of sending them: the process that makes the images reads them itself.

Copying a file into shared memory takes a worker longer than anything else that it does with it, and the copy is made
once more where it arrives. What is told is which file it was (device, number, size, time of its last change) and where
(`native/told_file.hpp`). Who reads it checks that it is that file still.

Data sets may delete or write over what they have opened. So a worker keeps the files of a batch open, by descriptors of
its own, until the batch has been fetched, and looks then whether each lies where it did. One that does not is copied
from its descriptor; if one was written to, the worker fetches the batch again. What becomes of a file later is found by
who reads it, and then the main process fetches the batch again. After any of this no process tells any more: files are
copied while they are open.
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

from ...native import _native
from .segment import Bytes

_SETTLED_S = 2.0  # younger files are copied: who has written them may be about to write others there


class Moved(OSError):
    """A file that was told of is not there any more, or has changed."""


class Teller(Protocol):
    """What is told instead of its bytes."""

    @property
    def told(self) -> bytes | None:
        """What tells of the file, as long as its bytes are not held."""

    @property
    def data(self) -> Bytes:
        """The bytes."""

    def take_in(self, fd: int) -> bool:
        """Hold the bytes of the file, which is open as ``fd``, from now on; False: it has been written to."""

    def take_back(self) -> None:
        """Hold the bytes privately from now on, if they can be read."""


_EARLIER = 2  # batches that may still be on their way out when another one is fetched
_MOST_OPEN = 256  # descriptors that are kept, if the system lets a process have four times as many


class _Now(threading.local):
    telling = False
    missed = False

    def __init__(self) -> None:
        self.open: deque[tuple[weakref.ref[Any], int]] = deque()  # of this batch, the latest, with descriptors
        self.told: list[weakref.ref[Any]] = []  # of this batch
        self.earlier: deque[list[weakref.ref[Any]]] = deque()


_now = _Now()
_in_worker = False
_most_open = _MOST_OPEN
_stopped = False
_flags: list[Any] = []  # of all loaders with workers: the first number, in shared memory, says whether to stop


def watch(flag: Any) -> Any:
    """A loader's workers are about to start, which :func:`use` this int64 tensor in shared memory."""
    _flags.append(flag)
    flag[0] = int(_stopped)
    return flag


def retire(flag: Any) -> None:
    """They have ended; what one of them has found out holds for the next ones."""
    if any(known is flag for known in _flags) and int(flag[0]):
        stop()
    _flags[:] = [known for known in _flags if known is not flag]


def use(flag: Any) -> None:
    """In a worker: files are told of from now on, until ``flag`` says otherwise."""
    global _in_worker, _most_open
    _in_worker = True
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    _most_open = _MOST_OPEN if limit == resource.RLIM_INFINITY else max(1, min(_MOST_OPEN, limit // 4))
    _flags[:] = [flag.numpy()]


def stop() -> None:
    """No process tells of files any more."""
    _set(stopped=True)


def resume() -> None:
    """They may again."""
    _set(stopped=False)


def _set(*, stopped: bool) -> None:
    global _stopped
    _stopped = stopped
    for flag in _flags:
        flag[0] = int(stopped)


def begin() -> None:
    """This thread fetches a batch that can be fetched again."""
    _close()
    _now.telling = _in_worker and not _flags[0][0]
    _now.missed = False


def settle() -> None:
    """The batch has been fetched, and is about to travel: of its files, those that have gone meanwhile are copied."""
    while _now.open:
        _release()


def _release() -> None:
    """Close the first descriptor that is kept; if the file does not lie where it did, it is copied before."""
    reference, fd = _now.open.popleft()
    try:
        teller: Teller | None = reference()
        what = None if teller is None else teller.told
        if teller is not None and what is not None and not _native.recipe.is_told_there(what):
            stop()
            _now.missed |= not teller.take_in(fd)
    finally:
        os.close(fd)


def _close() -> None:
    while _now.open:
        os.close(_now.open.popleft()[1])


def end() -> None:
    """The batch has been fetched, or could not be.

    What was told of in an earlier one and is still there is an image that the data set keeps: it is to be what it is
    now, whatever becomes of its file.
    """
    _close()
    _now.telling = _now.missed = False
    if not _now.told and not _now.earlier:
        return
    _now.earlier.append(_now.told)
    _now.told = []
    if len(_now.earlier) > _EARLIER:
        for reference in _now.earlier.popleft():
            kept = reference()
            if kept is not None:
                kept.take_back()


def has_missed() -> bool:
    """Whether a file that was told of has changed, or could not be read, since :func:`begin` by this thread."""
    return _now.missed


def is_telling() -> bool:
    """Whether this thread fetches a batch whose files are told of."""
    return _now.telling


def tell(file: io.BufferedReader) -> bytes | None:
    """What tells of an open file.

    None if there is nothing to tell: it has no path, is none on a disk, is cut short, or was written a moment ago.
    """
    path = file.raw.name if hasattr(file.raw, "name") else None
    if type(path) is str:
        path = os.fsencode(path)
    if type(path) is not bytes:
        return None
    if path[:1] != b"/":
        path = os.path.join(os.getcwdb(), path)
    return _native.recipe.tell(file.fileno(), path, _SETTLED_S)


def note(teller: Teller, fd: int) -> None:
    """A file was opened, as ``fd``, and is told of."""
    reference = weakref.ref(teller)
    _now.told.append(reference)
    if len(_now.open) >= _most_open:
        _release()
    try:
        own = os.dup(fd)
    except OSError:  # too many files are open: if this one goes, the batch is fetched again
        return
    _now.open.append((reference, own))


def read_if_there(what: bytes) -> Bytes | None:
    """As :func:`read`; None if it is not that file any more."""
    try:
        return np.frombuffer(_native.recipe.read_told(what), np.uint8)
    except OSError:
        return None


def read(what: bytes) -> Bytes:
    """The bytes of a file that was told of.

    Raises:
        Moved: it is not that file any more.
    """
    try:
        return np.frombuffer(_native.recipe.read_told(what), np.uint8)
    except OSError as error:
        stop()
        for reference, fd in _now.open:
            teller: Teller | None = reference()
            if teller is not None and teller.told == what and teller.take_in(fd):
                return teller.data
        _now.missed = True
        raise Moved(str(error)) from error


def joined(told: list[bytes]) -> Any:
    """What tells of several files, ``(files, bytes)``, each with zeros behind its path."""
    length = max(map(len, told))
    return np.frombuffer(b"".join(t.ljust(length, b"\0") for t in told), np.uint8).reshape(len(told), length)
