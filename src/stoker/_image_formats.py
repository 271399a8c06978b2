# SPDX-License-Identifier: Apache-2.0
"""Image formats that Pillow may decode for Stoker.

If the caller names no format, Pillow tries every plugin on the bytes, and the plugin for PostScript starts Ghostscript.
Files are untrusted, so Stoker names these formats, and Pillow refuses all others.
"""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

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


@functools.cache
def _built_in() -> tuple[str, ...]:
    """Return the formats of this Pillow, with their plugins loaded."""
    from PIL import Image

    for plugin in _PLUGINS:
        try:
            importlib.import_module(f"PIL.{plugin}ImagePlugin")
        except ImportError:  # an older Pillow
            continue
    return tuple(name for names in _PLUGINS.values() for name in names if name in Image.OPEN)


def pillow_formats() -> tuple[str, ...]:
    """Return the value for ``formats`` of ``PIL.Image.open``."""
    from PIL import Image

    return (*_built_in(), *(name for name in _REGISTERED_BY_USERS if name in Image.OPEN))


def open_image(file: Any) -> ImageFile.ImageFile:
    """Open a file, or its path, as one of the formats; errors are those of ``PIL.Image.open``."""
    from PIL import Image

    return Image.open(file, formats=pillow_formats())
