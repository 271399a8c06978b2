# SPDX-License-Identifier: Apache-2.0
"""Public callables with their arguments, and the arguments that a docstring describes."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

# All modules whose names without a leading underscore are public.
MODULES = (
    "stoker", "stoker.cpp", "stoker.dali", "stoker.dali.auto_aug", "stoker.dali.auto_aug.auto_augment",
    "stoker.dali.auto_aug.core", "stoker.dali.auto_aug.rand_augment", "stoker.dali.auto_aug.trivial_augment",
    "stoker.dali.backend",
    "stoker.dali.math", "stoker.dali.pipeline", "stoker.dali.plugin.base_iterator", "stoker.dali.plugin.pytorch",
    "stoker.dali.tensors", "stoker.dali.types", "stoker.frontends.eager", "stoker.frontends.video",
    "stoker.math", "stoker.readers",
    "stoker.numpy", "stoker.samplers", "stoker.serve", "stoker.testing",
    "stoker.torch", "stoker.torchvision", "stoker.triton", "stoker.types",
)  # fmt: skip
_INHERITED = "\n\0\n"  # between a documentation and those of base classes
_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields|Source):\s*$")
_ENTRY = re.compile(r"^    \*{0,2}(\w+)(?: \([^)]*\))?:( |$)")


def callables() -> Iterator[tuple[str, Any, str]]:
    """Yield qualified name, function and documentation of every public function, class and method.

    The function of a class is its ``__init__``. Its documentation is that of the class with that of ``__init__``.
    """
    seen: set[int] = set()
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name in getattr(module, "__all__", dir(module)):
            thing = getattr(module, name, None) if not name.startswith("_") else None
            if isinstance(thing, ModuleType) or id(thing) in seen or not _is_own(thing):
                continue
            seen.add(id(thing))
            if isinstance(thing, type):
                yield from _of_class(f"{module_name}.{name}", thing)
            elif isinstance(thing, FunctionType):
                yield f"{module_name}.{name}", thing, inspect.getdoc(thing) or ""


def _is_own(thing: Any) -> bool:
    """Return whether a thing is Stoker's. Operators, whose functions ``stoker.eager`` makes, have their own pages."""
    module = str(getattr(thing, "__module__", ""))
    return module.partition(".")[0] == "stoker" and module != "stoker.eager"


def _of_class(name: str, cls: type) -> Iterator[tuple[str, Any, str]]:
    own = vars(cls).get("__init__")
    text = inspect.getdoc(cls) or ""
    if isinstance(own, FunctionType) and not getattr(cls, "_is_protocol", False):
        inherited = [b.__doc__ or "" for b in cls.__mro__[1:-1] if _is_own(b)]
        yield (
            name,
            own,
            _joined([f"{text}\n\n{inspect.cleandoc(own.__doc__ or '')}", *map(inspect.cleandoc, inherited)]),
        )
    else:
        yield name, None, text
    for key, value in _members(cls).items():
        function = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if isinstance(function, FunctionType) and not key.startswith("_") and function.__name__ != "<lambda>":
            texts = [inspect.getdoc(vars(base)[key]) or "" for base in cls.__mro__ if key in vars(base)]
            yield f"{name}.{key}", function, _joined(texts)
        elif (
            isinstance(value, property)
            and not key.startswith("_")
            and getattr(value.fget, "__name__", "") != "<lambda>"
        ):
            yield f"{name}.{key}", None, inspect.getdoc(value) or ""


def _members(cls: type) -> dict[str, Any]:
    """Return the members of a class, with those that it inherits from classes of private modules."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if base is cls or (_is_own(base) and base.__module__.rpartition(".")[2].startswith("_")):
            found |= vars(base)
    return found


def _joined(texts: list[str]) -> str:
    """Return a documentation and those of base classes as one text."""
    return _INHERITED.join(texts)


def arguments(function: Any) -> list[str]:
    """Return the names of a function's arguments."""
    parameters = list(inspect.signature(function).parameters.values())
    return [p.name for p in parameters if p.name not in ("self", "cls") and not p.name.startswith("_")]


def described(text: str, section: str = "Args") -> set[str]:
    """Return the names that a section of a docstring describes."""
    current, found = "", set()
    for line in text.splitlines():
        heading = _SECTION.match(line)
        if heading or (line and not line.startswith(" ")):
            current = heading.group(1) if heading else ""
        entry = _ENTRY.match(line)
        if current == section and entry:
            found.add(entry.group(1))
    return found


def faults() -> Iterator[str]:
    """Yield a message for each public callable without documentation or with an argument that it does not describe.

    An argument is described in the section "Args", as an attribute of its class, or in the text as code.
    """
    for name, function, text in callables():
        if not text.strip():
            yield f"{name}: expected a docstring, got none"
            continue
        if function is None:
            continue
        names = arguments(function)
        mentioned = {word for code in re.findall(r"`+([^`]+)`+", text) for word in re.findall(r"\w+", code)}
        known = described(text) | described(text, "Attributes") | mentioned
        missing = [n for n in names if n not in known]
        if missing:
            yield f"{name}: the docstring does not describe {', '.join(missing)}"
        kinds = {p.kind for p in inspect.signature(function).parameters.values()}
        unknown = described(text.split(_INHERITED)[0]) - set(names)
        if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
            yield f"{name}: the docstring describes {', '.join(sorted(unknown))}, which it does not take"
