# SPDX-License-Identifier: Apache-2.0
"""``torchvision.set_image_backend("stoker")``: torchvision's own switch accepts one more name.

Importing ``stoker.torchvision`` installs the name in torchvision, now or as soon as torchvision is imported. It does
not import torchvision itself: that takes seconds, and not every program that imports Stoker needs it.
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


def register(switch: Callable[[bool], None]) -> None:
    """Let torchvision's ``set_image_backend`` call ``switch``: with True for "stoker", with False for other names."""
    module = sys.modules.get(_MODULE)
    if module is not None and hasattr(module, "set_image_backend"):
        _register_in(module, switch)
    elif not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(switch))


def _register_in(module: ModuleType, switch: Callable[[bool], None]) -> None:
    original = module.set_image_backend
    if hasattr(original, "offers_stoker"):
        return

    @functools.wraps(original)
    def set_image_backend(backend: str) -> None:
        if backend == NAME:
            original("PIL")  # Pillow still opens images, through its registry, where Stoker is
            switch(True)
            return
        if module.get_image_backend() == NAME:
            switch(False)
        original(backend)

    set_image_backend.offers_stoker = True  # type: ignore[attr-defined]
    module.set_image_backend = set_image_backend  # type: ignore[attr-defined]


class _Finder(importlib.abc.MetaPathFinder):
    """Import hook that waits for torchvision and then removes itself."""

    def __init__(self, switch: Callable[[bool], None]) -> None:
        self._switch = switch

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of the other finders, with a loader that registers the name afterwards."""
        if fullname != _MODULE or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            _register_after(spec.loader, self._switch)
        return spec


def _register_after(loader: Any, switch: Callable[[bool], None]) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        execute(module)
        _register_in(module, switch)

    loader.exec_module = exec_module
