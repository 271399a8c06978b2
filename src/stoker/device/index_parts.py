# SPDX-License-Identifier: Apache-2.0
"""Files that hold what JPEG decoders on a GPU know of files: how one is read and written, and how many become fewer.

A part is a head (magic, version, bytes of an entry) and pieces, each with its length and digest, with an empty one at
the end. It is written under another name, flushed to the disk and renamed, and never changed.
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
MOST_PARTS = 8  # of a folder that has just been merged
_VERSION = 3
_HEAD = struct.Struct("<16sII")  # magic, version, bytes of an entry
_MAGIC = b"stoker jpegindex"
_PIECE = struct.Struct("<Q16s")  # bytes that follow, and their digest; no bytes: the end
_MOST = 1 << 28  # bytes of a piece that can be right
_TOGETHER = 1 << 24  # bytes of a piece that is made of others
# How an entry begins: key, name, size, seed, bytes of the header behind it, and those that it has beside the fewest.
_RECORD = struct.Struct("<QQIIII")


def parts_of(folder: Path) -> list[Path]:
    """The parts in a folder, the oldest first."""
    return sorted(folder.glob(f"*{SUFFIX}"))


def write_part(folder: Path, record_bytes: int, pieces: Iterable[bytes]) -> None:
    """A new part, if there is anything in it. OSError: the disk has no room or does not let it, and nothing is left."""
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
    """The pieces of a part; ValueError says what is wrong with it."""
    head = file.read(_HEAD.size)
    if head != _HEAD.pack(_MAGIC, _VERSION, record_bytes):
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


def merge_parts(folder: Path, record_bytes: int) -> None:
    """Put the latest parts together where there are many. OSError: the disk has no room or does not let it.

    One that is much larger than all later ones together is left, so that what has been written is seldom written again.
    Of entries with one key the first stays, as where parts are read one after the other. Several processes may do it
    at once: a part goes when a new one with its entries is on the disk, so at worst both are there. Damaged parts stay.
    """
    with contextlib.suppress(FileNotFoundError):  # another process merges: it has seen to this one
        chosen = _chosen(folder)
        if not chosen:
            return
        whole: list[Path] = []
        write_part(folder, record_bytes, _together(chosen, record_bytes, whole))
        _flush_names(folder)
        for part in whole:
            part.unlink(missing_ok=True)


def _chosen(folder: Path) -> list[Path]:
    """The parts to be merged, the oldest first: an order in which the merged one stands last, as it must."""
    parts = parts_of(folder)
    if len(parts) <= MOST_PARTS:
        return []
    chosen: list[Path] = []
    total = 0
    for part in reversed(parts):
        size = part.stat().st_size
        if len(parts) - len(chosen) < MOST_PARTS and size > 2 * total:
            break
        chosen.append(part)
        total += size
    return chosen[::-1]


def _together(parts: list[Path], record_bytes: int, whole: list[Path]) -> Iterator[bytes]:
    """The entries of parts, each key once; ``whole`` gets those parts that were read to their ends."""
    seen: set[int] = set()
    piece = bytearray()
    for part in parts:
        with part.open("rb") as file, contextlib.suppress(ValueError):
            for packed in read_pieces(file, record_bytes):
                for key, entry in _entries(packed, record_bytes):
                    if key not in seen:
                        seen.add(key)
                        piece += entry
                if len(piece) >= _TOGETHER:
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
    """Nothing goes before what stands for it is certain to stay."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()
