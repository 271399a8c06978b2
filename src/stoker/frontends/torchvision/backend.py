# SPDX-License-Identifier: Apache-2.0
"""``torchvision.set_image_backend("stoker")``: torchvision's own switch knows one name more.

It is offered when ``stoker.torchvision`` is imported, in torchvision as it is or, if it has not been imported yet, as
soon as it is. That import is left to the script: it takes seconds, and not every program that names Stoker needs it.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

NAME = "stoker"
_MODULE = "torchvision"


def offer(switch: Callable[[bool], None]) -> None:
    """Let torchvision's ``set_image_backend`` call ``switch(True)`` for "stoker", and ``switch(False)`` for another."""
    module = sys.modules.get(_MODULE)
    if module is not None and hasattr(module, "set_image_backend"):
        _offer_in(module, switch)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(switch))


def _offer_in(module: ModuleType, switch: Callable[[bool], None]) -> None:
    original = module.set_image_backend
    if hasattr(original, "offers_stoker"):
        return

    @functools.wraps(original)
    def set_image_backend(backend: str) -> None:
        if backend == NAME:
            original("PIL")  # images are still opened by Pillow, whose registry Stoker is in
            switch(True)
            return
        if module.get_image_backend() == NAME:
            switch(False)
        original(backend)

    set_image_backend.offers_stoker = True  # type: ignore[attr-defined]
    module.set_image_backend = set_image_backend  # type: ignore[attr-defined]


class _Finder(importlib.abc.MetaPathFinder):
    """Waits for torchvision to be imported, and leaves."""

    def __init__(self, switch: Callable[[bool], None]) -> None:
        self._switch = switch

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec that others find, with a loader that offers the name afterwards."""
        if fullname != _MODULE or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            _offer_after(spec.loader, self._switch)
        return spec


def _offer_after(loader: Any, switch: Callable[[bool], None]) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        _offer_in(module, switch)

    loader.exec_module = exec_module
