# SPDX-License-Identifier: Apache-2.0
"""Type checks of a script within a fetch: ``type(x)`` of a lazy object is the class that the object represents.

``x.__class__`` and ``isinstance`` ask the object, but ``type(x)`` reads a field that no object can override. So the
functions of the script, and of libraries that are not in EXCLUDED, get another body while a DataLoader fetches: the
same code, except that its calls of the global name ``type`` call :func:`type_of`. The functions themselves, their
signatures and their lines stay the same.

A subclass of tensors without a ``__new__`` of its own gets one that materializes its arguments: ``Mine(x)``.
"""

from __future__ import annotations

import builtins
import contextlib
import dis
import functools
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator
from opcode import opmap
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import torch

from ..pillow.represented import ProxyMeta
from ..tensors.lazy_base import LazyBase, LazyMeta, materialize_nested
from .class_dispatch import represented_class

# Packages whose code must see the classes of lazy objects, or never receives one.
EXCLUDED = sys.stdlib_module_names | {
    "PIL",
    "functorch",
    "numpy",
    "stoker",
    "sympy",
    "torch",
    "torchgen",
    "torchvision",
}
_SUBJECTS = {"PIL", "torch", "torchvision"}
_NAME = "stoker_type_of"  # the builtin name of `type_of`; it stays, because a function may outlive its fetch
_METACLASSES = frozenset({LazyMeta, ProxyMeta})  # of lazy objects
_LOAD_GLOBAL, _EXTENDED_ARG = opmap["LOAD_GLOBAL"], opmap["EXTENDED_ARG"]
_LARGEST = 255  # of an instruction's argument
_MOST_OBJECTS = 10_000  # of a data set, that are searched for functions
_LONGEST = 1_000  # elements of a list that is searched
_WITHOUT_FUNCTIONS = {str, bytes, bool, int, float, complex, type(None), torch.Tensor, ModuleType}


def type_of(*args: Any, **kwargs: Any) -> Any:
    """Return ``type(...)``; of a lazy object, the class that the object represents."""
    kind = type(*args, **kwargs)
    return represented_class(kind) if type(kind) in _METACLASSES else kind


@functools.cache
def _is_known_python() -> bool:
    """Return whether this Python encodes a call of a global name in the way that :func:`with_type_of` expects."""

    def probe(x: Any) -> Any:
        return type(x)

    loads = [x.arg for x in dis.get_instructions(probe) if x.opcode == _LOAD_GLOBAL]
    return loads == [2 * probe.__code__.co_names.index("type") + 1]


def with_type_of(code: CodeType) -> CodeType:
    """Return code that calls :func:`type_of` where ``code`` calls ``type``, also in inner functions."""
    consts = tuple(with_type_of(x) if type(x) is CodeType else x for x in code.co_consts)
    if any(new is not old for new, old in zip(consts, code.co_consts, strict=True)):
        code = code.replace(co_consts=consts)
    number = len(code.co_names)
    if "type" not in code.co_names or 2 * number + 1 > _LARGEST or not _is_known_python():
        return code
    call = 2 * code.co_names.index("type") + 1  # the lowest bit: the value is called
    patched = bytearray(code.co_code)
    high = 0
    for i in range(0, len(patched), 2):
        operation, argument = patched[i], patched[i + 1] | high
        high = argument << 8 if operation == _EXTENDED_ARG else 0
        if operation == _LOAD_GLOBAL and argument == call:
            patched[i + 1] = 2 * number + 1
    if patched == code.co_code:
        return code
    return code.replace(co_code=bytes(patched), co_names=(*code.co_names, _NAME))


class _Swap(NamedTuple):
    """Function that calls ``type``, and its bodies outside of a fetch and within."""

    function: weakref.ref[FunctionType]
    outside: CodeType
    within: CodeType


class TypeChecks:
    """Functions that call ``type``, and subclasses of tensors, which a script had defined at the last scan."""

    def __init__(self) -> None:
        self._swaps: list[_Swap] = []
        self._classes: list[weakref.ref[type]] = []
        self._scanned: set[int] = set()  # modules, by the addresses of their dictionaries
        self._modules = 0  # number of modules at the last scan
        self._is_within = False

    def scan_new_modules(self) -> None:
        """Find functions in modules that the script has imported since the last scan."""
        if len(sys.modules) != self._modules:
            self.scan()

    def enter(self) -> None:
        """Begin a fetch."""
        self._is_within = True  # before the loop: a scan on another thread then swaps what this loop does not see
        self._enter(self._swaps, self._classes)

    def leave(self) -> None:
        """End a fetch."""
        self._is_within = False
        for reference, outside, within in self._swaps:
            function = reference()
            if function is not None and function.__code__ is within:
                function.__code__ = outside
        for kind in _alive(self._classes):
            if vars(kind).get("__new__") is _NEW:
                del kind.__new__

    def scan(self, *roots: Any) -> None:
        """Find functions in modules that are new since the last scan, and in the objects that ``roots`` refer to."""
        vars(builtins).setdefault(_NAME, type_of)
        known = {id(x) for swap in self._swaps if (x := swap.function()) is not None}
        found: list[_Swap] = []
        for function in (*self._functions_of_modules(self._new_modules()), *self._functions_of_objects(roots)):
            module = function.__globals__
            if id(function) in known or _is_excluded(module.get("__name__")) or "type" in module:
                continue
            known.add(id(function))
            within = with_type_of(function.__code__)
            if within is not function.__code__ and not _knows_lazy_classes(module):
                found.append(_Swap(weakref.ref(function), function.__code__, within))
        classes = [weakref.ref(kind) for kind in _subclasses(torch.Tensor)]
        self._swaps = [swap for swap in self._swaps if swap.function() is not None] + found
        self._classes = classes
        if self._is_within:
            self._enter(found, classes)

    def _enter(self, swaps: Iterable[_Swap], classes: Iterable[weakref.ref[type]]) -> None:
        for reference, outside, within in swaps:
            function = reference()
            if function is not None and function.__code__ is outside:
                function.__code__ = within
        for kind in _alive(classes):
            if "__new__" not in vars(kind):
                kind.__new__ = _NEW

    def _new_modules(self) -> list[dict[str, Any]]:
        """Return the modules since the last scan that may check types of lazy objects, and the script's own."""
        main = [vars(module) for module in [sys.modules.get("__main__")] if module is not None]
        if len(sys.modules) == self._modules:
            return main
        self._modules = len(sys.modules)
        modules = [vars(x) for x in list(sys.modules.values()) if issubclass(type(x), ModuleType)]
        return main + [x for x in modules if not self._is_scanned(x) and _names_subjects(x)]

    def _is_scanned(self, module: dict[str, Any]) -> bool:
        name = module.get("__name__")
        return _is_excluded(name) or (id(module) in self._scanned and name != "__main__")  # notebooks define more

    def _functions_of_modules(self, modules: list[dict[str, Any]]) -> Iterator[FunctionType]:
        """Yield the functions of modules, and of the modules that they refer to."""
        left = modules
        while left:
            module = left.pop()
            if self._is_scanned(module):
                continue
            self._scanned.add(id(module))
            main, found = module.get("__name__") == "__main__", list(module.values())
            for x in found:
                yield from _functions_of_class(x) if issubclass(type(x), type) else _functions_of(x)
            left += [other for x in found for other in _modules_of(x) if not (main and other is module)]

    def _functions_of_objects(self, roots: Iterable[Any]) -> Iterator[FunctionType]:
        """Find functions, also those that no module knows: lambdas, inner functions, methods of inner classes."""
        seen: dict[int, Any] = {}  # the objects too: an address is unique only while its object lives
        left = list(roots)
        while left and len(seen) < _MOST_OBJECTS:
            x = left.pop()
            kind = type(x)
            if id(x) in seen or kind in _WITHOUT_FUNCTIONS:
                continue
            seen[id(x)] = x
            owner = x if issubclass(kind, type) else kind
            methods = () if owner is not x and id(owner) in seen else _functions_of_class(owner)
            seen[id(owner)] = owner
            for function in (*_functions_of(x), *methods):
                if id(function) not in seen or function is x:
                    seen[id(function)] = function
                    left += _cell_contents(function)
                    yield from self._functions_of_modules([function.__globals__])
                    yield function
            left += _referents(x)


def _alive(classes: Iterable[weakref.ref[type]]) -> Iterator[Any]:
    return (kind for reference in classes if (kind := reference()) is not None)


def _is_excluded(module: Any) -> bool:
    return not isinstance(module, str) or module.partition(".")[0] in EXCLUDED


def _knows_lazy_classes(module: dict[str, Any]) -> bool:
    """Return whether a module names classes of lazy objects, so that it compares types with them."""
    return any(type(x) in _METACLASSES for x in list(module.values()))


def _modules_of(x: Any) -> list[dict[str, Any]]:
    """Return the module that a value of a module is, or comes from."""
    kind = type(x)
    if kind is FunctionType:
        return [x.__globals__]
    module = sys.modules.get(x.__module__) if issubclass(kind, type) and isinstance(x.__module__, str) else x
    return [vars(module)] if issubclass(type(module), ModuleType) else []


def _names_subjects(module: dict[str, Any]) -> bool:
    """Return whether a module names something of torch, torchvision or Pillow."""
    names = (other.get("__name__") for x in list(module.values()) for other in _modules_of(x))
    return any(isinstance(name, str) and name.partition(".")[0] in _SUBJECTS for name in names)


# The functions below compare `type(x)`: `isinstance` would ask the object, which may be a proxy that imports a module.


def _functions_of(x: Any) -> Iterator[FunctionType]:
    """Yield the Python functions that a function, a method, a decorated one or a property consists of."""
    kind = type(x)
    if kind is FunctionType:
        yield x
        yield from _functions_of(vars(x).get("__wrapped__"))
    elif kind is property:
        for accessor in (x.fget, x.fset, x.fdel):
            yield from _functions_of(accessor)
    elif name := _WRAPPED.get(kind):
        yield from _functions_of(getattr(x, name))


_WRAPPED = {
    MethodType: "__func__",
    staticmethod: "__func__",
    classmethod: "__func__",
    functools.partial: "func",
    functools.partialmethod: "func",
    functools.cached_property: "func",
    type(functools.cache(lambda: None)): "__wrapped__",
}


def _functions_of_class(kind: type) -> Iterator[FunctionType]:
    for base in type.mro(kind):
        if not _is_excluded(base.__module__):
            for x in list(vars(base).values()):
                yield from _functions_of(x)


def _cell_contents(function: FunctionType) -> list[Any]:
    """Return the values that an inner function refers to; a cell may be empty."""
    found = []
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):
            found.append(cell.cell_contents)
    return found


def _referents(x: Any) -> list[Any]:
    """Return the objects in a container, in the attributes of an object or in the arguments of a partial function."""
    kind = type(x)
    if kind in (list, tuple, set, frozenset):
        return list(x) if len(x) <= _LONGEST else []
    if kind is dict:
        return list(x.values()) if len(x) <= _LONGEST else []
    if kind is functools.partial:
        return [*x.args, *x.keywords.values(), x.func]
    if kind is MethodType:
        return [x.__self__]
    if issubclass(kind, type) or type(kind) in _METACLASSES:
        return []
    with contextlib.suppress(AttributeError):  # not `getattr`: an object's own method may do anything
        return list(object.__getattribute__(x, "__dict__").values())
    return []


def _subclasses(kind: type[Any]) -> Iterator[type[Any]]:
    """Yield the subclasses of tensors that scripts have defined without a ``__new__``."""
    for further in kind.__subclasses__():
        if not issubclass(further, LazyBase):
            if not _is_excluded(further.__module__) and further.__new__ in (torch.Tensor.__new__, _new_materialized):
                yield further
            yield from _subclasses(further)


def _new_materialized(kind: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a new object of a subclass of tensors, from plain tensors."""
    plain: Callable[[Any], Any] = materialize_nested
    return torch.Tensor.__new__(kind, *map(plain, args), **{name: plain(x) for name, x in kwargs.items()})


_NEW = staticmethod(_new_materialized)
