# SPDX-License-Identifier: Apache-2.0
"""Image formats that Pillow may decode for Stoker.

If the caller names no format, Pillow tries every plugin on the bytes, and the plugin for PostScript starts Ghostscript.
Files are untrusted, so Stoker names these formats, and Pillow refuses all others.
"""

from __future__ import annotations

import functools
import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ._import_lock import IMPORT_LOCK

if TYPE_CHECKING:
    from PIL import ImageFile

# By the name of the plugin's module. None of these plugins starts a program.
_PLUGINS = {
    "Jpeg": ("JPEG",), "Png": ("PNG",), "WebP": ("WEBP",), "Gif": ("GIF",), "Bmp": ("BMP", "DIB"), "Tiff": ("TIFF",),
    "Ppm": ("PPM",), "Jpeg2K": ("JPEG2000",), "Avif": ("AVIF",), "Qoi": ("QOI",),
}  # fmt: skip
_REGISTERED_BY_USERS = ("HEIF", "JXL")  # by packages such as pillow-heif, which the script imports
NAMES = "JPEG, PNG, WebP, GIF, BMP, TIFF, PNM, JPEG 2000, AVIF and QOI; HEIF and JPEG XL where a plugin is registered"

# Names by which readers find images in folders.
FILE_NAMES = (
    "*.jpg", "*.jpeg", "*.png", "*.bmp", "*.tif", "*.tiff", "*.pnm", "*.ppm", "*.pgm", "*.pbm", "*.jp2", "*.webp",
    "*.gif",
)  # fmt: skip


def is_image_name(name: str) -> bool:
    """Whether readers find a file of this name in a folder by default."""
    return name.lower().endswith(tuple(pattern[1:] for pattern in FILE_NAMES))


def pillow() -> ModuleType:
    """Return ``PIL.Image``. Pillow is imported on first use, which may be on any thread."""
    with IMPORT_LOCK:
        from PIL import Image
    return Image


@functools.cache
def _built_in() -> tuple[str, ...]:
    """Return the formats of this Pillow, with their plugins loaded."""
    openers = pillow().OPEN
    with IMPORT_LOCK:
        for plugin in _PLUGINS:
            try:
                importlib.import_module(f"PIL.{plugin}ImagePlugin")
            except ImportError:  # an older Pillow
                continue
    return tuple(name for names in _PLUGINS.values() for name in names if name in openers)


def pillow_formats() -> tuple[str, ...]:
    """Return the value for ``formats`` of ``PIL.Image.open``."""
    return (*_built_in(), *(name for name in _REGISTERED_BY_USERS if name in pillow().OPEN))


def open_image(file: Any) -> ImageFile.ImageFile:
    """Open a file, or its path, as one of the formats; errors are those of ``PIL.Image.open``."""
    opened: ImageFile.ImageFile = pillow().open(file, formats=pillow_formats())
    return opened
