# SPDX-License-Identifier: Apache-2.0
"""Operators by qualified name. The index is made by ``tools/index.py``; a module is imported when it is first used."""

from __future__ import annotations

import importlib

from ..contract.errors import ArgumentError, did_you_mean
from ..contract.operator import Operator
from ..ops._index import INDEX

_registered: dict[str, type[Operator]] = {}
_found: dict[str, type[Operator]] = {}


def register(operator: type[Operator]) -> type[Operator]:
    """Make a user's operator known under its name: ``fn.<name>`` and ``eager.<name>``. Works as a decorator.

    Raises:
        ArgumentError: the class has no name, or the name is taken by a built-in operator.
    """
    if not (isinstance(operator, type) and issubclass(operator, Operator) and operator.name):
        raise ArgumentError('expected a class `class MyOp(Operator, name="my_op")`, got ' + repr(operator))
    if operator.name in INDEX:
        raise ArgumentError(f"the name `{operator.name}` is a built-in operator's; choose another one")
    _registered[operator.name] = operator
    return operator


def find(name: str) -> type[Operator]:
    """The operator called ``name``; ArgumentError with the nearest name if there is none."""
    if name in _registered:
        return _registered[name]
    if name in _found:
        return _found[name]
    if name not in INDEX:
        hint = did_you_mean(name, [n for n in names() if not n.startswith("_")])
        raise ArgumentError(f"there is no operator `{name}`" + (f"; {hint}" if hint else ""))
    module, cls = INDEX[name].split(":")
    operator = getattr(importlib.import_module(f"stoker.{module}"), cls)
    _found[name] = operator
    return operator  # type: ignore[no-any-return]


def names() -> list[str]:
    """All qualified names, hidden ones (leading underscore) included."""
    return sorted({*INDEX, *_registered})


def is_group(prefix: str) -> bool:
    """Whether some operator's name begins with ``prefix.``."""
    return any(n.startswith(prefix + ".") for n in names())
