# SPDX-License-Identifier: Apache-2.0
"""Changes to other libraries that are in force only while a DataLoader fetches a batch.

A hook of a Python function replaces the function's body (its code object), so the function itself stays the same
object. The hook therefore also applies to functions that a script has imported by name. The code object has the
signature and the source lines of the original, so ``inspect`` and ``torch.jit.script`` find the original source.
"""

from __future__ import annotations

import functools
import os
import threading
import types
from collections.abc import Callable
from inspect import CO_VARARGS, CO_VARKEYWORDS
from typing import Any

Hook = Callable[..., Any]
_PLACEHOLDER = "hook of stoker.torchvision"


class FetchChanges:
    """Set of changes that :meth:`enter` makes and :meth:`leave` undoes; calls may be nested, and come from threads."""

    def __init__(self) -> None:
        self._changes: list[tuple[Callable[[], Any], Callable[[], Any]]] = []
        self._originals: dict[int, Callable[..., Any]] = {}
        self._depth = 0
        self._lock = threading.Lock()
        os.register_at_fork(after_in_child=self._begin_child)

    def _begin_child(self) -> None:
        """Undo the changes in a new process: the fetches that made them are the parent's."""
        self._lock = threading.Lock()  # another thread of the parent process may have held the old one
        if self._depth:
            self._depth = 1
            self.leave()

    def add(self, make: Callable[[], Any], undo: Callable[[], Any]) -> None:
        """Add a change, as two functions without arguments."""
        with self._lock:
            self._changes.append((make, undo))
            if self._depth:
                make()

    def replace_body(self, function: Any, hook: Hook) -> None:
        """Let ``function`` call ``hook(original, ...)``, with all arguments of the original by position."""
        function = getattr(function, "__func__", function)  # of a static method
        original = _copy_function(function)
        self._originals[id(function)] = original
        code = hooked_code(function.__code__, functools.partial(hook, original))
        self.add(
            functools.partial(setattr, function, "__code__", code),
            functools.partial(setattr, function, "__code__", function.__code__),
        )

    def original(self, function: Any) -> Any:
        """Return the function that a hook of ``function`` gets as its original; ``function`` if it has no hook."""
        return self._originals.get(id(function), function)

    def put(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Set an attribute to ``make(original)``, which is made once per original."""
        before: list[Any] = []
        made: list[Any] = [None, None]  # the latest original, and its replacement

        def change() -> None:
            original = vars(owner)[name]
            if made[0] is not original:
                made[:] = original, make(original)
            before.append(original)
            setattr(owner, name, made[1])

        self.add(change, lambda: setattr(owner, name, before.pop()))

    def put_item(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Set an entry of a dictionary, which may be a new one."""
        before: list[Any] = []

        def change() -> None:
            before.append(table.get(key, before))
            table[key] = value

        def undo() -> None:
            was = before.pop()
            if was is before:
                table.pop(key, None)
            else:
                table[key] = was

        self.add(change, undo)

    def enter(self) -> None:
        """Make all changes, unless they are in force."""
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                for make, _ in self._changes:
                    make()

    def leave(self) -> None:
        """Undo all changes if no other fetch is in flight."""
        with self._lock:
            if not self._depth:  # the take-over was disabled within the fetch
                return
            self._depth -= 1
            if not self._depth:
                for _, undo in reversed(self._changes):
                    undo()

    def clear(self) -> None:
        """Undo and forget all changes."""
        with self._lock:
            if self._depth:
                for _, undo in reversed(self._changes):
                    undo()
            self._depth = 0
            self._changes.clear()
            self._originals.clear()


def _copy_function(function: types.FunctionType) -> types.FunctionType:
    copy = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    functools.update_wrapper(copy, function)
    del copy.__wrapped__  # type: ignore[attr-defined]
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def _inner_code(code: types.CodeType) -> types.CodeType:
    return next(x for x in code.co_consts if isinstance(x, types.CodeType))


def hooked_code(code: types.CodeType, hook: Hook) -> types.CodeType:
    """Return a code object with the signature and the source lines of ``code`` that returns ``hook(...)``."""
    named, only = code.co_argcount, code.co_kwonlyargcount
    names = list(code.co_varnames)
    rest = names[named + only :]
    parameters, arguments = names[:named], names[:named]
    if code.co_posonlyargcount:
        parameters.insert(code.co_posonlyargcount, "/")
    if code.co_flags & CO_VARARGS:
        parameters.append(f"*{rest[0]}")
        arguments.append(f"*{rest.pop(0)}")
    elif only:
        parameters.append("*")
    parameters += names[named : named + only]
    arguments += [f"{name}={name}" for name in names[named : named + only]]
    if code.co_flags & CO_VARKEYWORDS:
        parameters.append(f"**{rest[0]}")
        arguments.append(f"**{rest[0]}")
    # A function accepts only code with the number of free variables that its closure has.
    cells = [f"stoker_cell_{i}" for i in range(len(code.co_freevars))]
    source = (
        f"def closure({', '.join(cells)}):\n"
        f" def function({', '.join(parameters)}): stoker_hook = {_PLACEHOLDER!r}; "
        f"return stoker_hook({', '.join(arguments)}) if 1 else ({', '.join(cells)})"
    )
    made = _inner_code(_inner_code(compile(source, code.co_filename, "exec")))
    return made.replace(
        co_consts=tuple(hook if x == _PLACEHOLDER else x for x in made.co_consts),
        co_filename=code.co_filename,
        co_firstlineno=code.co_firstlineno,
        co_name=code.co_name,
        co_qualname=code.co_qualname,
    )
