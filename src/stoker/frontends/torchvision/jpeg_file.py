# SPDX-License-Identifier: Apache-2.0
"""JPEG files that are open: their headers are read natively where nothing is unusual, their bytes in one piece.

Pillow reads a header in dozens of small steps, for what few scripts ask. Where native code knows what Pillow would
find, Pillow reads it when somebody asks: for ``info``, ``quantization`` and the like.
"""

from __future__ import annotations

import functools
import io
import os
from typing import Any

from PIL import Image, ImageFile
from PIL.JpegImagePlugin import JpegImageFile

from ...native import _native
from . import counts, retry, told, trial
from .early import MODES
from .image import InfoLater, _Recording, bare
from .likeness import named_after
from .recipe import Node
from .source import Source

_HEAD_BYTES = 4096  # what is looked at: a file's first buffer; few headers without EXIF data are longer
_MARKER_ROOM = 64  # some writers pad a file after its end marker


@named_after(JpegImageFile)
class LazyJpeg(_Recording, JpegImageFile):
    """A JPEG file that is open. Its bytes are read when something is done with it, and not decoded then."""

    _foreign = False
    _header: bytes | None = None  # if Pillow has not read it

    def _open(self) -> None:
        """Read the header, as Pillow."""
        file: Any = self.fp
        head = file.read(_HEAD_BYTES)
        found = _native.jpeg.plain_header(head) if type(head) is bytes else None
        if found is None:
            file.seek(0)
            super()._open()
            return
        self._take_header(head, found)

    def _take_header(self, head: bytes, found: tuple[int, int, int, int]) -> None:
        """Be the image of a file that begins with ``head``, in which native code has found nothing unusual."""
        width, height, components, end = found
        mode, header = MODES[components], head[:end]
        attributes = self.__dict__
        attributes["fp"].seek(end)
        attributes["_size"] = (width, height)
        attributes["_mode"] = mode
        attributes["tile"] = [ImageFile._Tile("jpeg", (0, 0, width, height), 0, (mode, ""))]
        attributes["_header"] = header
        attributes["info"] = InfoLater(functools.partial(_info, header))

    def __getattr__(self, name: str) -> Any:
        """What Pillow finds in a header, when somebody asks for it."""
        header = vars(self).get("_header")
        if header is None or name not in _names():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        for key, value in vars(_read(header)).items():
            vars(self).setdefault(key, value)
        return vars(self)[name]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return bare, (JpegImageFile,), self.__getstate__()

    def _recorded(self) -> Node | None:
        if self._node is None and self._im is None and not self._foreign:
            self._capture()
        return self._node

    def _capture(self) -> None:
        """Read the file, as Pillow would in ``load``: if it is one that native code surely decodes, that is all."""
        file = self.fp
        plain = self.mode in ("L", "RGB") and len(self.tile) == 1 and not self.decoderconfig
        plain = plain and not ImageFile.LOAD_TRUNCATED_IMAGES and trial.pillow_decodes_alike()
        source = self._whole(file) if plain and file is not None else None
        if file is None or source is None:
            counts.add(counts.FOREIGN)
            self._foreign = True
            return
        source.origin = retry.origin()
        self._node = Node.decode(source, self.size, 1 if self.mode == "L" else 3)
        self.tile = []
        self.readonly = 0
        if self._exclusive_fp and getattr(self, "_close_exclusive_fp_after_loading", True):
            file.close()
        self.fp = None

    def _whole(self, file: Any) -> Source | None:
        """All of the file; None if native code may not decode it."""
        if not retry.is_any_damaged():
            source = _of_regular(file) if self._header is not None else self._told(file)
            if source is not None:
                return source
        file.seek(0)
        data = file.read()
        fits = is_whole(data) and _is_native(data, self) and not retry.is_damaged(data)
        return Source.keep(data) if fits else None

    def _told(self, file: Any) -> Source | None:
        """A file whose header Pillow has read: it stands before where the reading stopped."""
        if not told.is_telling() or not _is_regular(file):
            return None
        head = os.pread(file.fileno(), max(file.tell(), _HEAD_BYTES), 0)
        what = told.tell(file) if _is_native(head, self) else None
        return None if what is None else Source.opened(what, file.fileno())


def open_plain(file: Any, filename: str | bytes | None) -> LazyJpeg | None:
    """As ``LazyJpeg(file, filename)`` without Pillow's constructors; None unless native code knows the header."""
    head = file.read(_HEAD_BYTES)
    found = _native.jpeg.plain_header(head) if type(head) is bytes else None
    if found is None:
        file.seek(0)
        return None
    image = LazyJpeg.__new__(LazyJpeg)
    image.__dict__.update(_blank())
    image.__dict__["fp"] = file
    image.__dict__["filename"] = "" if filename is None else filename
    image._take_header(head, found)
    return image


@functools.cache
def _blank() -> dict[str, Any]:
    """What Pillow sets in the image of a file; what may be changed in place, the reading of a header sets anew."""
    return vars(LazyJpeg(io.BytesIO(_smallest())))


def _is_regular(file: Any) -> bool:
    return type(file) is io.BufferedReader and type(file.raw) is io.FileIO


def _of_regular(file: Any) -> Source | None:
    """All of a regular file, if it has its end marker."""
    if not _is_regular(file):
        return None
    fd = file.fileno()
    what = told.tell(file) if told.is_telling() else None
    if what is not None:
        return Source.opened(what, fd)
    size = os.fstat(fd).st_size
    if size < _MARKER_ROOM or not is_whole(os.pread(fd, _MARKER_ROOM, size - _MARKER_ROOM)):
        return None
    return Source.of_file(fd, size)


def _is_native(data: bytes, image: JpegImageFile) -> bool:
    """Whether the decoder does the file that begins so, as far as can be told without decoding it."""
    info = _native.jpeg.jpeg_info(data)
    size = (info["width"], info["height"])
    fits = size == image.size and info["components"] == len(image.getbands())
    return bool(info["support"] == "native" and fits)


def is_whole(data: bytes) -> bool:
    """Whether a JPEG file has its end marker."""
    return data.rfind(b"\xff\xd9", -_MARKER_ROOM) >= 0


def _read(header: bytes) -> JpegImageFile:
    return JpegImageFile(io.BytesIO(header))


def _info(header: bytes) -> dict[Any, Any]:
    return _read(header).info


@functools.cache
def _names() -> frozenset[str]:
    """Of what Pillow sets in an image while it reads the file."""
    return frozenset(vars(_read(_smallest())))


def _smallest() -> bytes:
    """A JPEG file."""
    smallest = io.BytesIO()
    Image.new("L", (1, 1)).save(smallest, "JPEG")
    return smallest.getvalue()
