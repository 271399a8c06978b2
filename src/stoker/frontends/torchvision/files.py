# SPDX-License-Identifier: Apache-2.0
"""Pillow's factories of images, with images that record.

Files of other formats than JPEG are decoded by Pillow where they were, and what is done with their pixels is recorded.
Nothing of them is kept open or decoded later, so that an error is raised by the line that raised it before, and every
mode (palettes, 16 bits, inks, transparency) is converted by Pillow's own code.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from PIL import Image, ImageFile, JpegImagePlugin

from . import counts
from .image import CHANNELS, _PixelsLater, _Recording, bare, is_small, leaf
from .jpeg_file import LazyJpeg, open_plain
from .likeness import named_after
from .recipe import Node

# Pillow's modules with the formats that files of photographs have. What is not here is left as it is.
_PLUGINS = ("Png", "WebP", "Bmp", "Gif", "Tiff", "Ppm", "Avif", "Jpeg2K")


class OpenedFile(_Recording):
    """Before the class of a format: an open file that records once its pixels are there."""

    _kind: type[ImageFile.ImageFile]

    def load(self) -> Any:
        """Read and decode, as Pillow; the access to pixels is made when one is asked for."""
        touched = self._touched
        super(_Recording, self).load()
        self._touched = touched  # by Pillow alone
        return _PixelsLater(self)

    def seek(self, frame: int) -> None:
        """As Pillow's."""
        self._node = None
        super().seek(frame)

    def _recorded(self) -> Node | None:
        if self._node is None and not self._touched:
            self.load()
            if self.mode in CHANNELS and self._im is not None:
                self._node = leaf(self._im)
            else:
                counts.add(counts.MODE)
        return self._node

    def convert(self, mode: str | None = None, *args: Any, **kwargs: Any) -> Image.Image:
        """As Pillow's; what is done with the result is recorded."""
        return super(_Recording, self).convert(mode, *args, **kwargs)

    def copy(self) -> Image.Image:
        """As Pillow's."""
        return super(_Recording, self).copy()

    __copy__ = copy

    def __reduce_ex__(self, protocol: Any) -> Any:
        return bare, (self._kind,), self.__getstate__()


@functools.cache
def _recording(kind: type[ImageFile.ImageFile]) -> type:
    """The class of a format, recording."""
    names = {"_kind": kind, "__doc__": kind.__doc__}
    return named_after(kind)(type(kind.__name__, (OpenedFile, kind), names))


def opened(image: ImageFile.ImageFile) -> ImageFile.ImageFile:
    """A file that Pillow has opened, recording from now on."""
    counts.add(counts.FOREIGN)
    if is_small(image.size):
        counts.add(counts.SMALL)
        return image
    image.__class__ = _recording(type(image))
    return image


def open_jpeg(file: Any, filename: str | bytes | None = None) -> ImageFile.ImageFile:
    """Pillow's factory for JPEG files, lazily. Files with several pictures are decoded by Pillow."""
    image = open_plain(file, filename)
    if image is not None:
        return image
    image = LazyJpeg(file, filename)
    if image._header is None and "mp" in image.info:
        file.seek(0)
        return opened(JpegImagePlugin.jpeg_factory(file, filename))
    return image


def open_file(factory: Any, file: Any, filename: str | bytes | None = None) -> ImageFile.ImageFile:
    """Pillow's factory of a format, ``factory``, with images that record."""
    return opened(factory(file, filename))


def formats() -> list[str]:
    """The formats of this Pillow that are recorded, as its registry names them."""
    names = []
    for plugin in _PLUGINS:
        try:
            module = importlib.import_module(f"PIL.{plugin}ImagePlugin")
        except ImportError:  # an older Pillow
            continue
        kinds = [x for x in vars(module).values() if isinstance(x, type) and issubclass(x, ImageFile.ImageFile)]
        names += [k.format for k in kinds if k.__module__ == module.__name__ and k.format in Image.OPEN]
    return sorted({str(name) for name in names})
