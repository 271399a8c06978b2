# SPDX-License-Identifier: Apache-2.0
"""Class names of proxies: a proxy has the name of the Pillow or torch class that it represents.

Errors of torchvision, Pillow and torch name the class of the argument that they refuse, and users know these names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T", bound=type)


def named_after(kind: type) -> Callable[[T], T]:
    """Return a decorator that gives a class the name and the module of ``kind``.

    Such a class must pickle its objects as objects of ``kind``, because pickle would find ``kind`` by that name.
    """

    def name(cls: T) -> T:
        cls.__module__, cls.__name__, cls.__qualname__ = kind.__module__, kind.__name__, kind.__qualname__
        return cls

    return name
