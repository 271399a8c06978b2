# SPDX-License-Identifier: Apache-2.0
"""Registry of operators by qualified name. ``tools/index.py`` writes the index; modules are imported on first use."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from .._import_lock import IMPORT_LOCK, TABLE_LOCK
from ..contract.errors import ArgumentError, did_you_mean
from ..contract.operator import Operator
from ..ops._index import INDEX

revision = 0  # changes with every registration, and invalidates cached plans
_registered: dict[str, type[Operator]] = {}
_found: dict[str, type[Operator]] = {}


def register(operator: type[Operator]) -> type[Operator]:
    """Register a user's operator under its name: ``fn.<name>`` and ``eager.<name>``. Works as a decorator.

    A class of the same name replaces the previous one, for example when a notebook cell runs again.

    Args:
        operator: the class, a subclass of :class:`~stoker.Operator` with a name.

    Raises:
        ArgumentError: the class has no name, or a built-in operator has that name.
    """
    if not (isinstance(operator, type) and issubclass(operator, Operator) and operator.name):
        raise ArgumentError('expected a class `class MyOp(Operator, name="my_op")`, got ' + repr(operator))
    if operator.name in INDEX:
        raise ArgumentError(f"the name `{operator.name}` is a built-in operator's; choose another one")
    global revision
    with TABLE_LOCK:
        _registered[operator.name] = operator
        revision += 1
    return operator


def find(name: str) -> type[Operator]:
    """Return the operator called ``name``.

    Raises:
        ArgumentError: there is no such operator; the text has the nearest name.
    """
    if name in _registered:
        return _registered[name]
    if name in _found:
        return _found[name]
    if name not in INDEX:
        raise ArgumentError(_no_operator(name))
    module, cls = INDEX[name].split(":")
    with IMPORT_LOCK:
        operator = getattr(importlib.import_module(f"stoker.{module}"), cls)
    _found[name] = operator
    return operator  # type: ignore[no-any-return]


def names() -> list[str]:
    """Return all qualified names, including hidden ones (with a leading underscore)."""
    return sorted({*INDEX, *_registered})


def _no_operator(name: str) -> str:
    hint = did_you_mean(name, [n for n in names() if not n.startswith("_")])
    group = name.rpartition(".")[0]
    there = f". `{group}` has: {', '.join(members(group + '.'))}" if is_group(group) else ""
    return f"there is no operator `{name}`" + (f"; {hint}" if hint else "") + there


def is_group(prefix: str) -> bool:
    """Return whether some operator's name begins with ``prefix.``."""
    return any(n.startswith(prefix + ".") for n in names())


def is_built_in(name: str) -> bool:
    """Return whether Stoker itself has this operator, or operators in this group. A user's may be registered again."""
    return name in INDEX or any(n.startswith(name + ".") for n in INDEX)


def members(prefix: str = "") -> list[str]:
    """Return the names after ``prefix`` (empty, or a group's name with its dot): operators and groups."""
    rest = (n[len(prefix) :] for n in names() if n.startswith(prefix))
    return sorted({n.split(".")[0] for n in rest if not n.startswith("_")})


class Group:
    """Group of operators, such as ``fn.readers``.

    Args:
        module: name of the public module that contains the group.
        get: returns that module's function, or group, of a qualified name.
    """

    def __init__(self, module: str, prefix: str, get: Callable[[str], Any]) -> None:
        self._module = module
        self._prefix = prefix
        self._get = get
        self.__name__ = f"{module}.{prefix}"

    def __getattr__(self, name: str) -> Any:
        qualified = f"{self._prefix}.{name}"
        found = self._get(qualified)
        if is_built_in(qualified):
            self.__dict__[name] = found
        return found

    def __dir__(self) -> list[str]:
        return members(self._prefix + ".")

    def __repr__(self) -> str:
        return f"<stoker.{self._module}.{self._prefix}: {', '.join(dir(self))}>"


def attribute(module: str, name: str, get: Callable[[str], Any], make: Callable[[str], Any]) -> Any:
    """Return the attribute of ``module`` for a qualified name: a function that ``make`` creates, or a group.

    Raises:
        AttributeError: there is no such attribute; the text has the nearest name.
    """
    if name.startswith("_"):
        raise AttributeError(name)
    if name in INDEX or name in _registered:
        return make(name)
    if is_group(name):
        return Group(module, name, get)
    raise AttributeError(_no_operator(name))
