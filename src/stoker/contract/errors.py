# SPDX-License-Identifier: Apache-2.0
"""Errors of one form: expected, got, where, way out.

StokerError
├── ArgumentError (ValueError)    an argument is wrong; raised where the pipeline is defined or built
│   └── UnknownArgumentError      an operator has no argument, or a pipeline no source, of this name
├── DataError (RuntimeError)      a sample is wrong; raised at its batch
├── UnsupportedError              something that Stoker does not do (yet)
├── DeviceError (RuntimeError)    a GPU is missing, or a call to it fails
├── ResourceError (RuntimeError)  the system has no thread or memory left for a run; the next call tries again
├── StateError (RuntimeError)     a call at the wrong time: a closed pipeline, a token of another graph
└── GraphError                    a graph that breaks its own rules
"""

from __future__ import annotations

import errno
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .._import_lock import IMPORT_LOCK
from .text import printable_lines


@dataclass(frozen=True, slots=True)
class SourceLine:
    """Line in the user's code."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class StokerError(Exception):
    """Base of all errors that Stoker raises on purpose. Control characters in texts, as of file names, are escaped.

    Args:
        *args: the text, and further arguments of the exception.
        **named: attributes of subclasses that take them by name.
    """

    def __init__(self, *args: object, **named: Any) -> None:
        super().__init__(*(printable_lines(a) if isinstance(a, str) else a for a in args), **named)


class ArgumentError(StokerError, ValueError):
    """An argument is wrong."""


class UnknownArgumentError(ArgumentError):
    """An operator has no argument, or a pipeline no source, of this name."""


class DataError(StokerError, RuntimeError):
    """A sample is wrong.

    Attributes:
        row: the sample's position in the batch.
        sample: its index in the data set; None if unknown.

    Args:
        message: the text.
        row: the sample's position in the batch; None if the whole batch fails.
        sample: its index in the data set; None if unknown.
    """

    def __init__(self, message: str, *, row: int | None = None, sample: int | None = None) -> None:
        super().__init__(message)
        self.row = row
        self.sample = sample


class UnreadableFile(DataError):
    """A file that no decoder reads. The text names the formats, so why a native kernel did not take it adds nothing."""


class UnsupportedError(StokerError):
    """An operation is not supported."""


class DeviceError(StokerError, RuntimeError):
    """An accelerator is missing, or a call to it fails."""


class ResourceError(StokerError, RuntimeError):
    """The system refuses a resource that a run needs, such as a thread or memory. The next call tries again."""


class StateError(StokerError, RuntimeError):
    """A call at the wrong time, or a state that does not fit."""


class GraphError(StokerError):
    """A graph that breaks its own rules."""


# No descriptors, memory or space, or a mount or server that is gone. The list is also native/io/files.cpp's.
_OF_SYSTEM = frozenset({
    errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ENOSPC, errno.EDQUOT, errno.ENODEV,
    errno.ENOTCONN, errno.ETIMEDOUT, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH,
})  # fmt: skip


def is_system_failure(error: BaseException | None) -> bool:
    """Return whether an error is a failure of the operating system rather than of a sample.

    Such errors are: no file descriptors left, no memory, a full disk, a mount or server that is gone.
    """
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in _OF_SYSTEM)


def is_read_failure(error: BaseException | None) -> bool:
    """Return whether an error, or its cause, is an input/output error.

    One file with such an error is a bad sample. Several in a row are a dead disk.
    """
    return any(isinstance(e, OSError) and e.errno == errno.EIO for e in (error, getattr(error, "__cause__", None)))


def message(
    subject: str, text: str, *, sample: str | None = None, source: SourceLine | None = None, hint: str = ""
) -> str:
    """Return an error text of the form ```crop`: expected ..., got ... — sample 3, made at train.py:42. Way out.``"""
    where = ", ".join([*([sample] if sample else []), *([f"made at {source}"] if source else [])])
    return f"`{subject}`: {text}" + (f" — {where}" if where else "") + (f". {hint}" if hint else "")


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return ``did you mean `x`?`` with the nearest known name, or an empty string (also for what is no name)."""
    with IMPORT_LOCK:  # a fork in another thread waits for it
        import difflib

    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6) if isinstance(name, str) else ()
    return f"did you mean `{near[0]}`?" if near else ""


def show_number(x: Any) -> str:
    """Return a number as text, without a needless fraction."""
    if not isinstance(x, float):
        return str(x)
    return str(int(x)) if math.isfinite(x) and x == int(x) else f"{x:.7g}"
