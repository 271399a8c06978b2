# SPDX-License-Identifier: Apache-2.0
"""What JPEG decoders on a GPU find out about files, in a folder that outlives the process.

The folder holds parts, each written once: under another name first, and renamed when it is whole and on the disk. So
readers never see half of one, and several processes may share a folder without waiting for each other: each reads the
parts that are there when it starts, and adds one with the files that it has met besides. A part that is damaged, or of
another version, is left out with a warning; its files are found out about anew.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import struct
import tempfile
import time
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..contract.errors import ArgumentError
from ..native import _native

SUFFIX = ".stoker-jpeg-index"
_VERSION = 1
_HEAD = struct.Struct("<16sII")  # magic, version, bytes of an entry
_MAGIC = b"stoker jpegindex"
_PIECE = struct.Struct("<Q16s")  # bytes that follow, and their digest; no bytes: the end
_SLOTS = 2048  # of a piece
_MOST = 1 << 28  # bytes of a piece that can be right


_OPEN: weakref.WeakSet[IndexFolder] = weakref.WeakSet()


@atexit.register
def save_all() -> None:
    """What pipelines know that nobody has closed; before the interpreter takes apart what that needs."""
    for folder in list(_OPEN):
        folder.save()


class IndexFolder:
    """The parts in ``path`` as an index's beginning, and a new part for what it has learnt.

    Raises:
        ArgumentError: ``path`` is there, and is no folder.
    """

    def __init__(self, path: str | os.PathLike[str], index: _native.gpu.JpegIndex, device: _native.gpu.Device) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise ArgumentError(f"`Pipeline`: expected a folder as `gpu_jpeg_index_path`, got the file '{self.path}'")
        self._index, self._device = index, device
        self._written = 0
        self._process = os.getpid()
        _OPEN.add(self)

    def load(self) -> None:
        """Take over what is known of files, as far as there is room. One warning tells of parts that are left out."""
        bad = []
        for part in sorted(self.path.glob(f"*{SUFFIX}")):
            try:
                self._load(part)
            except (OSError, ValueError) as error:
                bad.append(f"'{part.name}' ({error})")
        self._written = self._index.slots
        if bad:
            text = f"not used of the index of JPEG files in '{self.path}': {', '.join(bad)}"
            warnings.warn(
                f"{text}. What was known of its files is found out anew; delete it", RuntimeWarning, stacklevel=2
            )

    def _load(self, part: Path) -> None:
        with part.open("rb") as file:
            for packed in _pieces(file):
                self._index.unpack(self._device, packed)

    def save(self) -> None:
        """Write what is new. A warning, and no part, if the disk has no room or does not let it."""
        count = self._index.slots
        if count == self._written or os.getpid() != self._process:  # a child process has no device
            return
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._write(count)
        except (OSError, _native.gpu.DeviceFailure) as error:
            text = f"what was found out about JPEG files is not kept in '{self.path}': {error}"
            warnings.warn(text, RuntimeWarning, stacklevel=2)
        self._written = count

    def _write(self, count: int) -> None:
        handle, name = tempfile.mkstemp(dir=self.path, prefix=".new-")
        try:
            with open(handle, "wb") as file:
                file.write(_HEAD.pack(_MAGIC, _VERSION, self._index.record_bytes))
                entries = 0
                for begin in range(self._written, count, _SLOTS):
                    packed = self._index.packed(self._device, begin, min(count, begin + _SLOTS))
                    entries += len(packed)
                    if packed:
                        file.write(_PIECE.pack(len(packed), _digest(packed)))
                        file.write(packed)
                file.write(_PIECE.pack(0, _digest(b"")))
                file.flush()
                os.fsync(file.fileno())
            if entries:
                os.replace(name, self.path / f"{time.time_ns():016x}-{os.getpid()}{SUFFIX}")
        finally:
            Path(name).unlink(missing_ok=True)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    head = file.read(_HEAD.size)
    expected = _HEAD.pack(_MAGIC, _VERSION, _native.gpu.JpegIndex.record_bytes)
    if head != expected:
        known = len(head) == _HEAD.size and head[:16] == _MAGIC
        raise ValueError("it is of another version" if known else "it is no such file")
    while True:
        told = file.read(_PIECE.size)
        if len(told) < _PIECE.size:
            raise ValueError("it is cut short")
        size, digest = _PIECE.unpack(told)
        packed = file.read(size) if size <= _MOST else b""
        if len(packed) != size or _digest(packed) != digest:
            raise ValueError("it is damaged")
        if not size:
            return
        yield packed
