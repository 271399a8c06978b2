# SPDX-License-Identifier: Apache-2.0
"""Open JPEG files: native code reads plain headers, and the bytes are read in one piece.

Pillow reads a header in dozens of small steps, for attributes that few scripts use. For a plain header native code
knows what Pillow would find, and Pillow reads it on the first access to ``info``, ``quantization`` and the like.
"""

from __future__ import annotations

import functools
import io
import os
from typing import Any

from PIL import Image, ImageFile
from PIL.JpegImagePlugin import JpegImageFile

from ....native import _native
from .. import counts
from ..ir.recipe import Node
from ..materialize import retry, trial
from ..materialize.eager import MODES
from ..proxy_names import named_after
from ..transport import file_refs
from ..transport.source import Source
from .image import LazyInfo, RecordingImage, new_plain_image

_HEAD_BYTES = 4096  # a file's first buffer; few headers without EXIF data are longer
_MARKER_ROOM = 64  # some writers pad a file after its end marker


@named_after(JpegImageFile)
class LazyJpeg(RecordingImage, JpegImageFile):
    """Open JPEG file. The first step on it reads its bytes, and does not decode them."""

    represents = JpegImageFile
    _is_left_to_pillow = False
    _header: bytes | None = None  # None once Pillow has read it

    def _open(self) -> None:
        """Read the header like Pillow."""
        file: Any = self.fp
        head = file.read(_HEAD_BYTES)
        found = _native.jpeg.plain_header(head) if type(head) is bytes else None
        if found is None:
            file.seek(0)
            super()._open()
            return
        self._take_header(head, found)

    def _take_header(self, head: bytes, found: tuple[int, int, int, int]) -> None:
        """Take the attributes of a file that begins with ``head``, whose header native code has found to be plain."""
        width, height, components, end = found
        mode, header = MODES[components], head[:end]
        attributes = self.__dict__
        attributes["fp"].seek(end)
        attributes["_size"] = (width, height)
        attributes["_mode"] = mode
        attributes["tile"] = [ImageFile._Tile("jpeg", (0, 0, width, height), 0, (mode, ""))]
        attributes["_header"] = header
        attributes["info"] = LazyInfo(functools.partial(_read_info, header))

    def __getattr__(self, name: str) -> Any:
        """Return an attribute that Pillow reads from a header. The first access reads the header."""
        if vars(self).get("_header") is None or name not in _header_attributes():
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        self._take_pillows_attributes()
        return vars(self)[name]

    def _take_pillows_attributes(self) -> None:
        """Add the attributes that Pillow reads from the header."""
        if self._header is not None:
            for key, value in vars(_read_header(self._header)).items():
                vars(self).setdefault(key, value)

    def become_plain(self) -> None:
        """Turn the image into Pillow's, in place: an open file stays open, and Pillow reads it later."""
        self._take_pillows_attributes()
        if self._node is not None:
            vars(self).setdefault("map", None)  # Pillow's `load` sets this attribute
        super().become_plain()

    def __reduce_ex__(self, protocol: Any) -> Any:
        return new_plain_image, (JpegImageFile,), self.__getstate__()

    def _recorded_node(self) -> Node | None:
        if self._node is None and self._im is None and not self._is_left_to_pillow:
            self._capture()
        return self._node

    def _capture(self) -> None:
        """Read the file where Pillow's ``load`` would; do not decode it if native code is sure to succeed later."""
        file = self.fp
        plain = self.mode in ("L", "RGB") and len(self.tile) == 1 and not self.decoderconfig
        is_lenient = bool(ImageFile.LOAD_TRUNCATED_IMAGES)
        plain = plain and trial.pillow_decodes_equally() and (not is_lenient or trial.pillow_truncates_equally())
        source = self._read_source(file, is_lenient) if plain and file is not None else None
        if file is None or source is None:
            counts.add(counts.PILLOW)
            self._is_left_to_pillow = True
            return
        source.origin = retry.current_origin()
        self._node = Node.decode(source, self.size, 1 if self.mode == "L" else 3, is_lenient=is_lenient)
        self.tile = []
        self.readonly = 0
        if self._exclusive_fp and getattr(self, "_close_exclusive_fp_after_loading", True):
            file.close()
        self.fp = None

    def _read_source(self, file: Any, is_lenient: bool) -> Source | None:
        """Return the whole file; None if native code may fail to decode it. Lenient: it may lack its end."""
        if not retry.has_damaged():
            source = _regular_source(file, is_lenient) if self._header is not None else self._refer_source(file)
            if source is not None:
                return source
        file.seek(0)
        data = file.read()
        fits = (is_lenient or has_end_marker(data)) and _is_supported(data, self) and not retry.is_damaged(data)
        return Source.from_bytes(data) if fits else None

    def _refer_source(self, file: Any) -> Source | None:
        """Return a reference to a file whose header Pillow has read: the file's position is where Pillow stopped."""
        if not file_refs.is_referencing() or not _is_regular(file):
            return None
        head = os.pread(file.fileno(), max(file.tell(), _HEAD_BYTES), 0)
        ref = file_refs.make_ref(file) if _is_supported(head, self) else None
        return None if ref is None else Source.from_open_file(ref, file.fileno())


def open_plain(file: Any, filename: str | bytes | None) -> LazyJpeg | None:
    """Open a file like ``LazyJpeg(file, filename)``, without Pillow's constructors; None for unusual headers."""
    head = file.read(_HEAD_BYTES)
    found = _native.jpeg.plain_header(head) if type(head) is bytes else None
    if found is None:
        file.seek(0)
        return None
    image = LazyJpeg.__new__(LazyJpeg)
    image.__dict__.update(_new_attributes())
    image.__dict__["fp"] = file
    image.__dict__["filename"] = "" if filename is None else filename
    image._take_header(head, found)
    return image


def plain_source(image: JpegImageFile) -> Source | None:
    """Return the bytes of a file that Pillow has opened and not decoded, whose position does not change.

    Returns:
        None if the file is neither a regular one nor in memory, its header is unusual, or native code may fail to
        decode it.
    """
    file: Any = image.fp
    in_memory = type(file) is io.BytesIO
    if not in_memory and not _is_regular(file):
        return None
    data = file.getvalue() if in_memory else b""
    head = data[:_HEAD_BYTES] if in_memory else os.pread(file.fileno(), _HEAD_BYTES, 0)
    found = _native.jpeg.plain_header(head)
    if found is None or image.decoderconfig or retry.has_damaged() or not trial.pillow_decodes_equally():
        return None
    width, height, components, _ = found
    tile = ("jpeg", (0, 0, width, height), 0, (MODES[components], ""))
    if image.mode != MODES[components] or image.size != (width, height) or image.tile != [tile]:
        return None
    if in_memory:
        return Source.from_bytes(data) if has_end_marker(data) else None
    return _regular_source(file, is_lenient=False)


def close_exclusive(image: JpegImageFile, source: Source) -> None:
    """Close the file of an image that owns it, as Pillow does after decoding; the image keeps the bytes."""
    if image._exclusive_fp:
        file: Any = image.fp
        position = file.tell()
        file.close()
        image.fp = io.BytesIO(source.data.tobytes())
        image.fp.seek(position)


@functools.cache
def _new_attributes() -> dict[str, Any]:
    """Return Pillow's attributes of a file's image. Reading the header replaces those that may change in place."""
    return vars(LazyJpeg(io.BytesIO(_smallest_file())))


def _is_regular(file: Any) -> bool:
    return type(file) is io.BufferedReader and type(file.raw) is io.FileIO


def _regular_source(file: Any, is_lenient: bool) -> Source | None:
    """Return a regular file as a source; None if it lacks its end marker, unless ``is_lenient``."""
    if not _is_regular(file):
        return None
    fd = file.fileno()
    ref = file_refs.make_ref(file) if file_refs.is_referencing() else None
    if ref is not None:
        return Source.from_open_file(ref, fd)
    size = os.fstat(fd).st_size
    if not is_lenient and (size < _MARKER_ROOM or not has_end_marker(os.pread(fd, _MARKER_ROOM, size - _MARKER_ROOM))):
        return None
    return Source.from_file(fd, size)


def _is_supported(data: bytes, image: JpegImageFile) -> bool:
    """Return whether the native decoder supports the file that begins with ``data``, judged by its header."""
    info = _native.jpeg.jpeg_info(data)
    size = (info["width"], info["height"])
    fits = size == image.size and info["components"] == len(image.getbands())
    return bool(info["support"] == "native" and fits)


def has_end_marker(data: bytes) -> bool:
    """Return whether a JPEG file has its end marker."""
    return data.rfind(b"\xff\xd9", -_MARKER_ROOM) >= 0


def _read_header(header: bytes) -> JpegImageFile:
    return JpegImageFile(io.BytesIO(header))


def _read_info(header: bytes) -> dict[Any, Any]:
    return _read_header(header).info


@functools.cache
def _header_attributes() -> frozenset[str]:
    """Return the names of the attributes that Pillow sets while it reads a header."""
    return frozenset(vars(_read_header(_smallest_file())))


def _smallest_file() -> bytes:
    """Return the bytes of a small JPEG file."""
    smallest = io.BytesIO()
    Image.new("L", (1, 1)).save(smallest, "JPEG")
    return smallest.getvalue()
