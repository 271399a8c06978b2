# SPDX-License-Identifier: Apache-2.0
"""Pillow's factories for formats other than JPEG, with images that record later steps.

Pillow decodes such files when it would without Stoker, and the steps on their pixels are recorded. No file is kept open
or decoded later. Therefore an error is raised by the same line of the script, and every mode (palettes, 16 bits, CMYK,
transparency) is converted by Pillow's own code.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from PIL import Image, ImageFile

from .. import counts, recording
from ..ir.recipe import Node
from ..proxy_names import named_after
from .image import CHANNELS, LazyPixelAccess, RecordingImage, is_small, new_plain_image, pixels_node
from .jpeg_file import LazyJpeg, open_plain

# Pillow's modules with the usual formats of photographs. Files of other formats stay Pillow's.
_PLUGINS = ("Png", "WebP", "Bmp", "Gif", "Tiff", "Ppm", "Avif", "Jpeg2K")


class OpenedFile(RecordingImage):
    """Mixin before the class of a format: an open file that records once its pixels are decoded."""

    represents: type[ImageFile.ImageFile]

    def load(self) -> Any:
        """Read and decode like Pillow; return a proxy of Pillow's pixel access."""
        touched = self._is_exposed
        super(RecordingImage, self).load()
        self._is_exposed = touched  # Pillow's own access does not expose the pixels to the script
        return LazyPixelAccess(self)

    def seek(self, frame: int) -> None:
        """Seek like Pillow."""
        self._node = None
        super().seek(frame)

    def _recorded_node(self) -> Node | None:
        if self._node is None and not self._is_exposed:
            self.load()
            if self.mode in CHANNELS and self._im is not None:
                self._node = pixels_node(self._im)
            else:
                counts.add(counts.MODE)
        return self._node

    def convert(self, mode: str | None = None, *args: Any, **kwargs: Any) -> Image.Image:
        """Convert like Pillow; later steps on the result are recorded."""
        return super(RecordingImage, self).convert(mode, *args, **kwargs)

    def copy(self) -> Image.Image:
        """Copy like Pillow."""
        return super(RecordingImage, self).copy()

    __copy__ = copy

    def __reduce_ex__(self, protocol: Any) -> Any:
        return new_plain_image, (self.represents,), self.__getstate__()


@functools.cache
def _recording_class(kind: type[ImageFile.ImageFile]) -> type:
    """Return the recording subclass of a format's class."""
    names = {"represents": kind, "__doc__": kind.__doc__}
    return named_after(kind)(type(kind.__name__, (OpenedFile, kind), names))


def record_opened(image: ImageFile.ImageFile) -> ImageFile.ImageFile:
    """Let a file that Pillow has opened record from now on."""
    counts.add(counts.PILLOW)
    if is_small(image.size):
        counts.add(counts.SMALL)
        return image
    image.__class__ = _recording_class(type(image))
    recording.track(image)
    return image


def open_jpeg(factory: Any, file: Any, filename: str | bytes | None = None) -> ImageFile.ImageFile:
    """Open a JPEG file lazily, in place of Pillow's ``factory``. Pillow decodes files with several pictures."""
    if not recording.is_on():
        return factory(file, filename)  # type: ignore[no-any-return]
    image = open_plain(file, filename) or LazyJpeg(file, filename)
    recording.track(image)
    if image._header is None and "mp" in image.info:
        file.seek(0)
        return record_opened(factory(file, filename))
    return image


def open_file(factory: Any, file: Any, filename: str | bytes | None = None) -> ImageFile.ImageFile:
    """Open a file with Pillow's ``factory`` of a format, and let its image record."""
    image = factory(file, filename)
    return record_opened(image) if recording.is_on() else image


def recorded_formats() -> list[str]:
    """Return the names of the recorded formats, as in Pillow's registry."""
    names = []
    for plugin in _PLUGINS:
        try:
            module = importlib.import_module(f"PIL.{plugin}ImagePlugin")
        except ImportError:  # an older Pillow
            continue
        kinds = [x for x in vars(module).values() if isinstance(x, type) and issubclass(x, ImageFile.ImageFile)]
        names += [k.format for k in kinds if k.__module__ == module.__name__ and k.format in Image.OPEN]
    return sorted({str(name) for name in names})
