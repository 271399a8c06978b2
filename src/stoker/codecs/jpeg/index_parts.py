# SPDX-License-Identifier: Apache-2.0
"""Part files of the JPEG index: reading, writing and merging.

A part is a head (magic, version, bytes of an entry) and pieces, each with its length and digest. An empty piece marks
the end. A part is written under a temporary name, flushed to the disk, renamed, and never changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import struct
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

SUFFIX = ".stoker-jpeg-index"
MAX_PARTS = 8  # maximum number of parts after a merge
_VERSION = 3
_HEAD = struct.Struct("<16sII")  # magic, version, bytes of an entry
_MAGIC = b"stoker jpegindex"
_PIECE = struct.Struct("<Q16s")  # number of bytes that follow, and their digest; 0 bytes: the end
_MAX_PIECE_BYTES = 1 << 28  # maximum of bytes in a valid piece
_MERGED_PIECE_BYTES = 1 << 24  # bytes of a merged piece
# Start of an entry: key, name, size, seed, bytes of the header after it, and bytes beyond the minimum.
_RECORD = struct.Struct("<QQIIII")


def parts_of(folder: Path) -> list[Path]:
    """Return the parts in a folder, the oldest first."""
    return sorted(folder.glob(f"*{SUFFIX}"))


def write_part(folder: Path, record_bytes: int, pieces: Iterable[bytes]) -> None:
    """Write a new part, unless it would be empty.

    Raises:
        OSError: the disk is full or read-only; no file remains.
    """
    handle, name = tempfile.mkstemp(dir=folder, prefix=".new-")
    try:
        with open(handle, "wb") as file:
            file.write(_HEAD.pack(_MAGIC, _VERSION, record_bytes))
            entries = 0
            for packed in pieces:
                if packed:
                    entries += len(packed)
                    file.write(_PIECE.pack(len(packed), _digest(packed)))
                    file.write(packed)
            file.write(_PIECE.pack(0, _digest(b"")))
            file.flush()
            os.fsync(file.fileno())
        if entries:
            os.replace(name, folder / f"{time.time_ns():016x}-{os.getpid()}{SUFFIX}")
    finally:
        Path(name).unlink(missing_ok=True)


def read_pieces(file: BinaryIO, record_bytes: int) -> Iterator[bytes]:
    """Yield the pieces of a part.

    Raises:
        ValueError: the part is damaged or has another version; the text says how.
    """
    head = file.read(_HEAD.size)
    if head != _HEAD.pack(_MAGIC, _VERSION, record_bytes):
        known = len(head) == _HEAD.size and head[:16] == _MAGIC
        raise ValueError("it is of another version" if known else "it is no such file")
    while True:
        header = file.read(_PIECE.size)
        if len(header) < _PIECE.size:
            raise ValueError("it is cut short")
        size, digest = _PIECE.unpack(header)
        packed = file.read(size) if size <= _MAX_PIECE_BYTES else b""
        if len(packed) != size or _digest(packed) != digest:
            raise ValueError("it is damaged")
        if not size:
            return
        yield packed


def merge_parts(folder: Path, record_bytes: int) -> None:
    """Merge the latest parts if there are many.

    A part that is much larger than all later ones together is left alone, so that data are seldom rewritten. Of entries
    with one key the first stays, as when parts are read one after the other. Several processes may merge concurrently:
    a part is removed only when a new one with its entries is on the disk, so at worst both exist. Damaged parts stay.

    Raises:
        OSError: the disk is full or read-only.
    """
    with contextlib.suppress(FileNotFoundError):  # another process has merged and removed this part
        chosen = _parts_to_merge(folder)
        if not chosen:
            return
        whole: list[Path] = []
        write_part(folder, record_bytes, _merge_entries(chosen, record_bytes, whole))
        _flush_names(folder)
        for part in whole:
            part.unlink(missing_ok=True)


def _parts_to_merge(folder: Path) -> list[Path]:
    """Return the parts to be merged, oldest first. They are the latest ones, because the merged part sorts last."""
    parts = parts_of(folder)
    if len(parts) <= MAX_PARTS:
        return []
    chosen: list[Path] = []
    total = 0
    for part in reversed(parts):
        size = part.stat().st_size
        if len(parts) - len(chosen) < MAX_PARTS and size > 2 * total:
            break
        chosen.append(part)
        total += size
    return chosen[::-1]


def _merge_entries(parts: list[Path], record_bytes: int, whole: list[Path]) -> Iterator[bytes]:
    """Yield the entries of parts, each key once. Parts that were read to their ends are appended to ``whole``."""
    seen: set[int] = set()
    piece = bytearray()
    for part in parts:
        with part.open("rb") as file, contextlib.suppress(ValueError):
            for packed in read_pieces(file, record_bytes):
                for key, entry in _entries(packed, record_bytes):
                    if key not in seen:
                        seen.add(key)
                        piece += entry
                if len(piece) >= _MERGED_PIECE_BYTES:
                    yield bytes(piece)
                    piece.clear()
            whole.append(part)
    yield bytes(piece)


def _entries(packed: bytes, record_bytes: int) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(packed):
        if at + record_bytes > len(packed):
            raise ValueError("an entry is cut short")
        key, _, _, _, header_bytes, more_bytes = _RECORD.unpack_from(packed, at)
        end = at + record_bytes + more_bytes + (header_bytes + 7) // 8 * 8
        if end > len(packed):
            raise ValueError("an entry is cut short")
        yield key, packed[at:end]
        at = end


def _flush_names(folder: Path) -> None:
    """Flush the folder's entries to the disk, so that a part is removed only after its replacement is durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
