# SPDX-License-Identifier: Apache-2.0
"""``torchvision.set_image_backend("stoker")``: torchvision's own switch accepts one more name.

Importing ``stoker.torchvision`` installs the name in torchvision, now or as soon as torchvision is imported. It does
not import torchvision itself: that takes seconds, and not every program that imports Stoker needs it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType

from . import imports, video_backend

NAME = "stoker"
_MODULE = "torchvision"


def register(switch: Callable[[bool], None]) -> None:
    """Let torchvision's ``set_image_backend`` call ``switch``: with True for "stoker", with False for other names."""
    imports.after_import(_MODULE, lambda module: _register_in(module, switch))


def _register_in(module: ModuleType, switch: Callable[[bool], None]) -> None:
    video_backend.register_in(module)
    original = getattr(module, "set_image_backend", None)
    if original is None or hasattr(original, "offers_stoker"):
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
