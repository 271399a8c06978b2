# SPDX-License-Identifier: Apache-2.0
"""What stands for an object of Pillow's or torch's has the name of its class.

Errors of torchvision, Pillow and torch name the class of what they got, and a script's author knows theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T", bound=type)


def named_after(kind: type) -> Callable[[T], T]:
    """A decorator: the class has the name, and the module, that ``kind`` has.

    Its objects are pickled as those of ``kind``: by name, pickle would find that class.
    """

    def name(cls: T) -> T:
        cls.__module__, cls.__name__, cls.__qualname__ = kind.__module__, kind.__name__, kind.__qualname__
        return cls

    return name
