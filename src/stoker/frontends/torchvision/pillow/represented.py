# SPDX-License-Identifier: Apache-2.0
"""Represented class of lazy Pillow images: ``image.__class__``, and ``isinstance(other, type(image))``.

A script may set the class of an image to its own (``image.__class__ = Mine``). Then a lazy image becomes a plain one.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from typing import Any


class ProxyMeta(ABCMeta):  # the metaclass of Pillow's files
    """Metaclass of proxies: objects of the represented class count as instances of the proxy's class."""

    represents: type | None

    def __instancecheck__(cls, x: Any) -> bool:
        return type.__instancecheck__(cls, x) if cls.represents is None else isinstance(x, cls.represents)


class Represented(metaclass=ProxyMeta):
    """Mixin of lazy images: ``__class__`` is the represented class, and can be set."""

    represents: type | None = None

    @abstractmethod
    def become_plain(self) -> None:
        """Turn the object into one of the represented class, in place."""

    def _get_class(self) -> Any:
        return type(self).represents or type(self)

    def _set_class(self, kind: type) -> None:
        self.become_plain()
        self.__class__ = kind

    __class__ = property(_get_class, _set_class)


def set_class(x: Any, kind: type) -> None:
    """Set the class of a proxy, without materializing."""
    _CLASS.__set__(x, kind)


_CLASS: Any = object.__dict__["__class__"]
