# SPDX-License-Identifier: Apache-2.0
"""Pickler of sources for spawned processes: functions that the process cannot import are sent by value, as in DALI."""

from __future__ import annotations

import builtins
import dis
import importlib
import io
import marshal
import pickle
import sys
from collections.abc import Callable, Iterator
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, TypeVar

_MARK = "_stoker_by_value"
F = TypeVar("F", bound=Callable[..., Any])


class ByValuePickler:
    """Serializer with ``dumps`` and ``loads``, the default of ``py_callback_pickler`` in ``stoker.dali``.

    Lambdas, functions inside of functions, and functions marked by :func:`pickle_by_value` are sent with their code,
    their defaults, the variables of enclosing functions that they use, and the global variables that they read. The
    process has its own copies of all these. Everything else is sent as :mod:`pickle` sends it: functions and classes of
    modules by name. The bytes are for the same version of Python.
    """

    @staticmethod
    def dumps(producer: Any) -> bytes:
        """Return the bytes of a source.

        Args:
            producer: the source, or an object that contains it.

        Raises:
            Exception: something in it cannot be sent, such as a generator or an open file.
        """
        file = io.BytesIO()
        _Pickler(file, pickle.HIGHEST_PROTOCOL).dump(producer)
        return file.getvalue()

    @staticmethod
    def loads(data: bytes) -> Any:
        """Return the source of :meth:`dumps`.

        Args:
            data: its bytes.
        """
        return pickle.loads(data)


def pickle_by_value(fun: F) -> F:
    """Mark a function of a module, so that spawned processes get it by value and do not import it.

    Args:
        fun: the function, which is returned.

    Raises:
        TypeError: it is no function written in Python.
    """
    if not isinstance(fun, FunctionType):
        raise TypeError(f"`pickle_by_value`: expected a function, got {type(fun).__name__}")
    setattr(fun, _MARK, True)
    return fun


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, FunctionType) and not _is_importable(obj):
            return _reduced(obj)
        if isinstance(obj, CellType):
            return _empty_cell, (), _contents(obj), None, None, _fill_cell
        if isinstance(obj, ModuleType):
            return importlib.import_module, (obj.__name__,)
        return NotImplemented


def _is_importable(function: FunctionType) -> bool:
    """Return whether another process finds the function by its name. It runs the main script as a module, too."""
    if getattr(function, _MARK, False):
        return False
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function and hasattr(sys.modules[function.__module__], "__file__")


def _reduced(function: FunctionType) -> tuple[Any, ...]:
    """Return the parts of a function, for ``reducer_override``.

    The state comes last: it may contain the function itself, which the pickler knows by then.
    """
    names = set(_names_read(function.__code__))
    state = {
        "globals": {name: value for name, value in function.__globals__.items() if name in names},
        "defaults": function.__defaults__,
        "kwdefaults": function.__kwdefaults__,
        "attributes": dict(function.__dict__),
        "qualname": function.__qualname__,
        "doc": function.__doc__,
    }
    made = (marshal.dumps(function.__code__), function.__name__, function.__module__, function.__closure__)
    return _function, made, state, None, None, _fill_function


def _names_read(code: CodeType) -> Iterator[str]:
    """Yield the global names that the code reads, and those that functions inside of it read."""
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith("LOAD_") and instruction.opname.endswith(("_GLOBAL", "_GLOBALS", "_NAME")):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_read(constant)


def _contents(cell: CellType) -> tuple[Any, ...]:
    """Return the variable of an enclosing function; () if it has no value yet."""
    try:
        return (cell.cell_contents,)
    except ValueError:
        return ()


def _empty_cell() -> CellType:
    return CellType()


def _fill_cell(cell: CellType, contents: tuple[Any, ...]) -> None:
    for value in contents:
        cell.cell_contents = value


def _function(code: bytes, name: str, module: str, closure: tuple[CellType, ...] | None) -> FunctionType:
    space = {"__builtins__": builtins, "__name__": module}
    return FunctionType(marshal.loads(code), space, name, None, closure)


def _fill_function(function: FunctionType, state: dict[str, Any]) -> None:
    function.__globals__.update(state["globals"])
    function.__defaults__, function.__kwdefaults__ = state["defaults"], state["kwdefaults"]
    function.__dict__.update(state["attributes"])
    function.__qualname__, function.__doc__ = state["qualname"], state["doc"]
