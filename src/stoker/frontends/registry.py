# SPDX-License-Identifier: Apache-2.0
"""Registry of operators by qualified name. ``tools/index.py`` writes the index; modules are imported on first use.

A name means, in this order: an operator that the program has registered, one of an installed package (entry points of
the group ``stoker.operators``), a built-in one. So an operator that a new version of Stoker adds never replaces a
user's of the same name. ``stoker.<name>`` is always the built-in one.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

from .._import_lock import IMPORT_LOCK, TABLE_LOCK
from ..contract.errors import ArgumentError, ResourceError, StokerError, did_you_mean
from ..contract.operator import Operator
from ..contract.warning import warn
from ..ops._index import INDEX

BUILT_IN = "stoker."  # names with this prefix are those of built-in operators
ENTRY_POINTS = "stoker.operators"
revision = 0  # changes with every registration, and invalidates cached plans
_registered: dict[str, type[Operator]] = {}
_found: dict[str, type[Operator]] = {}


def register(operator: type[Operator]) -> type[Operator]:
    """Register a user's operator under its name: ``fn.<name>`` and ``eager.<name>``. Works as a decorator.

    A class of the same name replaces the previous one, for example when a notebook cell runs again. If a built-in
    operator has that name, the user's is meant and a warning says so; ``fn.stoker.<name>`` is the built-in one.
    Built-in operators that use it keep using the built-in one.

    Args:
        operator: the class, a subclass of :class:`~stoker.Operator` with a name.

    Raises:
        ArgumentError: the class has no name, or a name in the group ``stoker``.
    """
    if not (isinstance(operator, type) and issubclass(operator, Operator) and operator.name):
        raise ArgumentError('expected a class `class MyOp(Operator, name="my_op")`, got ' + repr(operator))
    if operator.name.startswith(BUILT_IN):
        raise ArgumentError(f"expected a name outside of the group `stoker`, which is built in, got `{operator.name}`")
    if operator.name in INDEX and operator.name not in _registered:
        _warn_of_two(operator.name, "an operator that this program registers")
    global revision
    with TABLE_LOCK:
        _registered[operator.name] = operator
        revision += 1
    return operator


def find(name: str) -> type[Operator]:
    """Return the operator called ``name``.

    Raises:
        ArgumentError: there is no such operator; the text has the nearest name.
        ResourceError: an installed package has it and cannot be imported.
    """
    if name in _registered:
        return _registered[name]
    if name in _found:
        return _found[name]
    if name in _installed():
        return _load_installed(name)
    built_in = name.removeprefix(BUILT_IN)
    if built_in not in INDEX:
        raise ArgumentError(_no_operator(name))
    module, cls = INDEX[built_in].split(":")
    with IMPORT_LOCK:
        operator = getattr(importlib.import_module(f"stoker.{module}"), cls)
    _found[name] = operator
    return operator  # type: ignore[no-any-return]


@functools.cache
def _installed() -> dict[str, list[Any]]:
    """Return the entry points of installed packages by operator name. No module of theirs is imported."""
    with IMPORT_LOCK:  # some of its modules are imported by the call
        from importlib.metadata import entry_points

        points = entry_points(group=ENTRY_POINTS)
    found: dict[str, list[Any]] = {}
    for point in points:
        if not point.name.startswith(BUILT_IN):
            same = found.setdefault(point.name, [])
            if all(other.value != point.value for other in same):  # a package may be on the path twice
                same.append(point)
    return found


def _load_installed(name: str) -> type[Operator]:
    """Import the module of an installed package that has the operator."""
    points = _installed()[name]
    packages = [_package_of(p) for p in points]
    if len(points) > 1:
        raise ArgumentError(f"`{name}`: expected one package with this operator, got {' and '.join(sorted(packages))}")
    if name in INDEX:
        _warn_of_two(name, f"an operator of the package {packages[0]}")
    try:
        with IMPORT_LOCK:
            found = points[0].load()
    except StokerError as error:
        raise type(error)(f"`{name}` of the package {packages[0]}: {error}") from error
    except Exception as error:  # any code of the package
        text = f"`{name}`: the package {packages[0]} cannot be imported: {type(error).__name__}: {error}"
        raise ResourceError(text) from error
    own = getattr(found, "operator", found)  # functions of `stoker.cpp` and `stoker.fuse` have their class
    if name in _registered:  # the import has registered it
        return _registered[name]
    if not (isinstance(own, type) and issubclass(own, Operator) and own.name == name):
        raise ArgumentError(
            f"`{name}`: expected the entry point of the package {packages[0]} to register an operator of this name, "
            f"got {points[0].value!r} without one"
        )
    return register(own)


def _package_of(point: Any) -> str:
    """Return the name of an entry point's package."""
    return str(point.dist.name) if getattr(point, "dist", None) is not None else str(point.value)


def _warn_of_two(name: str, owner: str) -> None:
    warn(
        f"`{name}` is {owner}, and now also the name of a built-in one. `fn.{name}` stays the former; "
        f"`fn.{BUILT_IN}{name}` is the built-in one. Rename yours to end this warning",
        stacklevel=3,
    )


def names() -> list[str]:
    """Return all qualified names, including hidden ones (with a leading underscore)."""
    return sorted({*INDEX, *_registered, *_installed()})


def _no_operator(name: str) -> str:
    hint = did_you_mean(name, [n for n in names() if not n.startswith("_")])
    group = name.rpartition(".")[0]
    there = f"`{group}` has: {', '.join(members(group + '.'))}" if is_group(group) else ""
    text = f"there is no operator `{name}`" + (f"; {hint}" if hint else "")
    return text + ((" " if hint else ". ") + there if there else "")


def is_group(prefix: str) -> bool:
    """Return whether some operator's name begins with ``prefix.``."""
    return _without_stoker(prefix + ".") == "" or any(n.startswith(_without_stoker(prefix + ".")) for n in names())


def is_built_in(name: str) -> bool:
    """Return whether only Stoker itself has this operator, or operators in this group.

    Others may be registered again, or for the first time.
    """
    if name in INDEX:
        return name not in _registered and name not in _installed()
    return any(n.startswith(name + ".") for n in INDEX)


def members(prefix: str = "") -> list[str]:
    """Return the names after ``prefix`` (empty, or a group's name with its dot): operators and groups."""
    inner = _without_stoker(prefix)
    rest = (n[len(inner) :] for n in (INDEX if prefix.startswith(BUILT_IN) else names()) if n.startswith(inner))
    return sorted({n.split(".")[0] for n in rest if not n.startswith("_")})


def _without_stoker(prefix: str) -> str:
    return prefix.removeprefix(BUILT_IN)


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
    if name in INDEX or name in _registered or name.removeprefix(BUILT_IN) in INDEX or name in _installed():
        return make(name)
    if is_group(name):
        return Group(module, name, get)
    raise AttributeError(_no_operator(name))
