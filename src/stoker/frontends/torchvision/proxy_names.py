# SPDX-License-Identifier: Apache-2.0
"""Class names of proxies: a proxy has the name of the Pillow or torch class that it represents.

Errors of torchvision, Pillow and torch name the class of the argument that they refuse, and users know these names.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TypeVar

T = TypeVar("T", bound=type)


def _name_methods(cls: type, kind: type) -> None:
    """Give the methods of a class the names of the methods that they override, which errors about arguments show."""
    for name, method in vars(cls).items():
        original = getattr(kind, name, None)
        if isinstance(method, FunctionType) and isinstance(original, FunctionType):
            method.__qualname__ = original.__qualname__


def named_after(kind: type) -> Callable[[T], T]:
    """Return a decorator that gives a class the name and the module of ``kind``.

    Such a class must pickle its objects as objects of ``kind``, because pickle would find ``kind`` by that name.
    """

    def name(cls: T) -> T:
        cls.__module__, cls.__name__, cls.__qualname__ = kind.__module__, kind.__name__, kind.__qualname__
        for base in cls.__mro__:
            if base.__module__.startswith(__package__) or base is cls:
                _name_methods(base, kind)
        return cls

    return name
