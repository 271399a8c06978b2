# SPDX-License-Identifier: Apache-2.0
"""Search for the libraries of image formats that the native decoder calls: libwebp and OpenJPEG.

Pillow's wheels bring them, and Pillow is always installed; a Pillow of the system has the system's. Only the version
that Pillow itself calls is used, so that pixels are Pillow's, and do not depend on whether a library was found.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from ..._import_lock import IMPORT_LOCK
from ...native import _native


def _candidates(stem: str, name: str) -> Iterator[str]:
    spec = importlib.util.find_spec("PIL")
    if spec is not None and spec.origin is not None:
        yield from map(str, sorted(Path(spec.origin).parents[1].glob(f"pillow.libs/{stem}-*.so*")))
    yield name


def _version_of_webp(library: ctypes.CDLL) -> str:
    version: int = library.WebPGetDecoderVersion()
    return f"{version >> 16}.{version >> 8 & 255}.{version & 255}"


def _version_of_openjpeg(library: ctypes.CDLL) -> str:
    library.opj_version.restype = ctypes.c_char_p
    version: bytes = library.opj_version()
    return version.decode()


_LIBRARIES = (
    ("webp", "libwebp", "libwebp.so.7", _version_of_webp, _native.raster.use_libwebp),
    ("jpg_2000", "libopenjp2", "libopenjp2.so.7", _version_of_openjpeg, _native.raster.use_openjpeg),
)


@functools.cache
def use_libraries() -> None:
    """Load the libraries that are there. Pillow decodes the files of others."""
    with IMPORT_LOCK:
        from PIL import features

        wanted = {feature: features.version(feature) for feature, *_ in _LIBRARIES if features.check(feature)}
    for feature, stem, name, version_of, use in _LIBRARIES:
        for path in _candidates(stem, name):
            try:
                if version_of(ctypes.CDLL(path)) == wanted.get(feature):
                    use(path)
                    break
            except (OSError, AttributeError, ValueError):  # another library
                continue
