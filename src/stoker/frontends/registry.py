# SPDX-License-Identifier: Apache-2.0
"""Operators by qualified name. The index is made by ``tools/index.py``; a module is imported when it is first used."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from ..contract.errors import ArgumentError, did_you_mean
from ..contract.operator import Operator
from ..ops._index import INDEX

revision = 0  # of what is registered: plans of another one may be of operators that there are no more
_registered: dict[str, type[Operator]] = {}
_found: dict[str, type[Operator]] = {}


def register(operator: type[Operator]) -> type[Operator]:
    """Make a user's operator known under its name: ``fn.<name>`` and ``eager.<name>``. Works as a decorator.

    A class of the same name takes the place of the one before, as when a cell of a notebook is run again.

    Raises:
        ArgumentError: the class has no name, or the name is taken by a built-in operator.
    """
    if not (isinstance(operator, type) and issubclass(operator, Operator) and operator.name):
        raise ArgumentError('expected a class `class MyOp(Operator, name="my_op")`, got ' + repr(operator))
    if operator.name in INDEX:
        raise ArgumentError(f"the name `{operator.name}` is a built-in operator's; choose another one")
    global revision
    _registered[operator.name] = operator
    revision += 1
    return operator


def find(name: str) -> type[Operator]:
    """The operator called ``name``; ArgumentError with the nearest name if there is none."""
    if name in _registered:
        return _registered[name]
    if name in _found:
        return _found[name]
    if name not in INDEX:
        raise ArgumentError(_no_operator(name))
    module, cls = INDEX[name].split(":")
    operator = getattr(importlib.import_module(f"stoker.{module}"), cls)
    _found[name] = operator
    return operator  # type: ignore[no-any-return]


def names() -> list[str]:
    """All qualified names, hidden ones (leading underscore) included."""
    return sorted({*INDEX, *_registered})


def _no_operator(name: str) -> str:
    hint = did_you_mean(name, [n for n in names() if not n.startswith("_")])
    group = name.rpartition(".")[0]
    there = f". `{group}` has: {', '.join(members(group + '.'))}" if is_group(group) else ""
    return f"there is no operator `{name}`" + (f"; {hint}" if hint else "") + there


def is_group(prefix: str) -> bool:
    """Whether some operator's name begins with ``prefix.``."""
    return any(n.startswith(prefix + ".") for n in names())


def members(prefix: str = "") -> list[str]:
    """What a user may write after ``prefix`` (nothing, or a group's name with its dot): operators and groups."""
    rest = (n[len(prefix) :] for n in names() if n.startswith(prefix))
    return sorted({n.split(".")[0] for n in rest if not n.startswith("_")})


class Group:
    """A group of operators, such as ``fn.readers``.

    Args:
        face: the module that shows it.
        get: gives that module's function, or group, of a qualified name.
    """

    def __init__(self, face: str, prefix: str, get: Callable[[str], Any]) -> None:
        self._face = face
        self._prefix = prefix
        self._get = get
        self.__name__ = f"{face}.{prefix}"

    def __getattr__(self, name: str) -> Any:
        return self._get(f"{self._prefix}.{name}")

    def __dir__(self) -> list[str]:
        return members(self._prefix + ".")

    def __repr__(self) -> str:
        return f"<stoker.{self._face}.{self._prefix}: {', '.join(dir(self))}>"


def attribute(face: str, name: str, get: Callable[[str], Any], make: Callable[[str], Any]) -> Any:
    """What ``face`` shows under a qualified name: a function that ``make`` gives, or a group.

    Raises:
        AttributeError: there is neither; with the nearest name.
    """
    if name.startswith("_"):
        raise AttributeError(name)
    if name in INDEX or name in _registered:
        return make(name)
    if is_group(name):
        return Group(face, name, get)
    raise AttributeError(_no_operator(name))
