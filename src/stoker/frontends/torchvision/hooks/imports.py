# SPDX-License-Identifier: Apache-2.0
"""Import hooks: changes to a module as soon as a script imports it, without importing it here."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

Change = Callable[[ModuleType], None]


def after_import(name: str, change: Change) -> None:
    """Call ``change`` with a module after its import: now if it is imported, otherwise once."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        change(module)
    elif not any(isinstance(finder, _Finder) and finder.name == name for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(name, change))


class _Finder(importlib.abc.MetaPathFinder):
    """Import hook that waits for a module and then removes itself. Searches without an import change nothing."""

    def __init__(self, name: str, change: Change) -> None:
        self.name = name
        self._change = change
        self._is_searching = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the other finders, with a loader that changes the module afterwards."""
        if fullname != self.name or self._is_searching:
            return None
        self._is_searching = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._is_searching = False
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            _change_after(spec.loader, self._apply)
        return spec

    def _apply(self, module: ModuleType) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
            self._change(module)


def _change_after(loader: Any, change: Change) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        change(module)

    loader.exec_module = exec_module
