# SPDX-License-Identifier: Apache-2.0
"""Warnings of Stoker. Their texts contain names of files, so control characters are escaped."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator

from .._import_lock import lock_around_fork
from .text import printable_lines


def warn(text: str, category: type[Warning] = RuntimeWarning, *, stacklevel: int = 1) -> None:
    """Issue a warning. A ``stacklevel`` of 1 is the line that calls this function."""
    warnings.warn(printable_lines(text), category, stacklevel=stacklevel + 1)


def warn_at_line(text: str, file: str, line: int) -> None:
    """Issue a RuntimeWarning at a line of the user's code."""
    warnings.warn_explicit(printable_lines(text), RuntimeWarning, file, line)


@contextlib.contextmanager
def ignored(category: type[Warning] = Warning) -> Iterator[None]:
    """Ignore warnings of a category until the block ends. Several threads may be in such blocks at the same time.

    ``warnings.catch_warnings`` alone restores the filters that it found. If a thread enters its block before another
    thread leaves one, and leaves it later, that would restore the filters of a block that has ended, for ever.
    """
    if getattr(sys.flags, "context_aware_warnings", 0):  # the default without the GIL: every thread has its own filters
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category)
            yield
        return
    _shared.enter(category)
    try:
        yield
    finally:
        _shared.leave()


class _SharedFilters:
    """Filters of all threads that are in a block: the first one to enter saves them, the last one to leave restores
    them.
    """

    def __init__(self) -> None:
        self._lock = lock_around_fork()
        self._inside = 0
        self._saved = contextlib.ExitStack()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._restore)  # the child lacks the threads that would leave

    def enter(self, category: type[Warning]) -> None:
        with self._lock:
            if not self._inside:
                self._saved.enter_context(warnings.catch_warnings())
            self._inside += 1
            warnings.simplefilter("ignore", category)

    def leave(self) -> None:
        with self._lock:
            if self._inside <= 1:
                self._restore()
            else:
                self._inside -= 1

    def _restore(self) -> None:
        self._inside = 0
        self._saved.close()


_shared = _SharedFilters()
