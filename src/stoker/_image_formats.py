# SPDX-License-Identifier: Apache-2.0
"""Image formats that Pillow may decode for Stoker.

If the caller names no format, Pillow tries every plugin on the bytes, and the plugin for PostScript starts Ghostscript.
Files are untrusted, so Stoker names these formats, and Pillow refuses all others.
"""

from __future__ import annotations

import functools
import importlib
import os
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

# Extensions of image files: readers take a file of such a name without a look at its content.
EXTENSIONS = (
    ".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".bmp", ".dib", ".tif", ".tiff", ".pnm", ".ppm", ".pgm", ".pbm", ".jp2",
    ".j2k", ".webp", ".gif", ".avif", ".heic", ".heif", ".jxl", ".qoi",
)  # fmt: skip

SIGNATURE_BYTES = 32
# Format, offset and bytes. Sources: the formats' specifications; see also `file`'s magic database.
_SIGNATURES = (
    ("JPEG", 0, b"\xff\xd8\xff"),
    ("PNG", 0, b"\x89PNG\r\n\x1a\n"),
    ("GIF", 0, b"GIF87a"),
    ("GIF", 0, b"GIF89a"),
    ("TIFF", 0, b"II*\0"),
    ("TIFF", 0, b"MM\0*"),
    ("TIFF", 0, b"II+\0"),
    ("TIFF", 0, b"MM\0+"),
    ("JPEG 2000", 0, b"\0\0\0\x0cjP  "),
    ("JPEG 2000", 0, b"\xff\x4f\xff\x51"),
    ("JPEG XL", 0, b"\xff\x0a"),
    ("JPEG XL", 0, b"\0\0\0\x0cJXL "),
    ("QOI", 0, b"qoif"),
)
# ISO/IEC 14496-12 files: the major brand decides.
_BRANDS = {b"avif": "AVIF", b"avis": "AVIF"} | dict.fromkeys(
    (b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1"), "HEIC"
)
_BMP_HEADERS = (12, 16, 40, 52, 56, 64, 108, 124)  # sizes of the header after the file header


def has_image_extension(name: str) -> bool:
    """Return whether a name has the extension of an image file, in upper or lower case."""
    return name.lower().endswith(EXTENSIONS)


def find_format(head: bytes) -> str | None:
    """Return the image format of a file by its first bytes (at least SIGNATURE_BYTES, or the whole file), or None."""
    for name, start, magic in _SIGNATURES:
        if head[start : start + len(magic)] == magic:
            return name
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WebP"
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12])
    if head[:2] == b"BM" and int.from_bytes(head[14:18], "little") in _BMP_HEADERS:
        return "BMP"
    if head[:1] == b"P" and head[1:2] in b"123456" and head[2:3] in (b" ", b"\n", b"\r", b"\t"):
        return "PNM"
    return None


def starts_like_image(path: str | os.PathLike[str]) -> bool:
    """Return whether a regular file begins like an image; False if it cannot be read."""
    try:
        with open(path, "rb", buffering=0) as file:
            return find_format(file.read(SIGNATURE_BYTES)) is not None
    except OSError:
        return False


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
