# SPDX-License-Identifier: Apache-2.0
"""Errors of ``stoker.dali``: Stoker's own, which are also of the built-in classes that DALI's scripts catch.

DALI raises RuntimeError, ValueError or TypeError, depending on the layer that notices a mistake. Stoker notices many
mistakes earlier. So every error that leaves ``stoker.dali`` is of all three classes, and an ``except`` clause that was
written for DALI catches it. An unknown argument of an operator is also a KeyError, and an unsupported operation a
NotImplementedError, as in DALI.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ...contract.errors import StokerError, UnknownArgumentError, UnsupportedError

_BUILT_IN = (RuntimeError, ValueError, TypeError)
_SPECIAL = {UnknownArgumentError: KeyError, UnsupportedError: NotImplementedError}
F = TypeVar("F", bound=Callable[..., Any])


_classes: dict[type[StokerError], type[StokerError]] = {}


def error_class(own: type[StokerError]) -> type[StokerError]:
    """Return the subclass of an error class that is also of the built-in classes."""
    known = _classes.get(own)
    if known is None:
        special = tuple(b for mine, b in _SPECIAL.items() if issubclass(own, mine))
        more = tuple(b for b in (*special, *_BUILT_IN) if not issubclass(own, b))
        known = _classes.setdefault(own, _subclass(own, more) if more else own)  # another thread may have been faster
    return known


def _subclass(own: type[StokerError], more: tuple[type[Exception], ...]) -> type[StokerError]:
    def reduce(self: StokerError) -> Any:
        reduced: Any = own.__reduce__(self)
        return (own, *reduced[1:])  # another process has no such class, but it has Stoker's

    names = {"__module__": own.__module__, "__qualname__": own.__qualname__, "__doc__": own.__doc__}
    text = own.__str__  # that of a KeyError is in quotes
    made: Any = type(own.__name__, (own, *more), {**names, "__reduce__": reduce, "__str__": text})
    _classes[made] = made
    return made  # type: ignore[no-any-return]


@contextmanager
def raising_as_dali() -> Iterator[None]:
    """Raise Stoker's errors of the block as errors of DALI's classes too."""
    try:
        yield
    except StokerError as error:
        if not isinstance(error, ImportError):
            error.__class__ = error_class(type(error))
        raise


def raises_as_dali(function: F) -> F:
    """Decorate a function so that its errors are of DALI's classes too."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        with raising_as_dali():
            return function(*args, **kwargs)

    return call  # type: ignore[return-value]
