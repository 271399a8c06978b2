# SPDX-License-Identifier: Apache-2.0
"""Merging of index parts on disk, while other processes change the folder."""

from __future__ import annotations

import os
import struct
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from stoker.codecs.jpeg import index_parts
from stoker.codecs.jpeg.index_folder import IndexFolder
from stoker.codecs.jpeg.index_parts import MAX_PARTS, merge_parts, parts_of, read_pieces, write_part

BYTES = 64  # of an entry, without its header


def entry(key: int, mark: int, header: int = 5) -> bytes:
    """Return an entry in its format on disk. ``mark`` distinguishes entries of one key."""
    begin = struct.pack("<QQIIII", key, key | 1, 1000, mark, header, 0)
    return begin.ljust(BYTES, bytes([mark])) + bytes((header + 7) // 8 * 8)


def write(folder: Path, *pieces: bytes) -> Path:
    before = set(parts_of(folder))
    write_part(folder, BYTES, pieces)
    (part,) = set(parts_of(folder)) - before
    return part


def entries(folder: Path) -> list[bytes]:
    """Return all entries of the folder, in the order in which they are read."""
    found = []
    for part in parts_of(folder):
        with part.open("rb") as file:
            for piece in read_pieces(file, BYTES):
                while piece:
                    header = struct.unpack_from("<I", piece, 24)[0]
                    end = BYTES + (header + 7) // 8 * 8
                    found.append(piece[:end])
                    piece = piece[end:]
    return found


def test_many_parts_become_few(tmp_path: Path) -> None:
    for k in range(40):
        write(tmp_path, entry(k, k % 250, header=k), entry(k // 2, 100) + entry(1000 + k, 7))
        merge_parts(tmp_path, BYTES)
        assert len(parts_of(tmp_path)) <= MAX_PARTS
    found = entries(tmp_path)
    first: dict[int, bytes] = {}
    for one in found:
        first.setdefault(struct.unpack_from("<Q", one)[0], one)
    assert sorted(first) == sorted({*range(40), *range(1000, 1040)})
    assert first[30] == entry(30, 30, header=30)  # the entry that was written first
    assert len(found) < 40 * 3
    assert all(not path.name.startswith(".new-") for path in tmp_path.iterdir())


def test_large_parts_are_not_written_again(tmp_path: Path) -> None:
    large = write(tmp_path, b"".join(entry(k, 1) for k in range(1000)))
    for k in range(MAX_PARTS):
        write(tmp_path, entry(2000 + k, 2))
    merge_parts(tmp_path, BYTES)
    first, _ = parts_of(tmp_path)
    assert first == large and len(entries(tmp_path)) == 1000 + MAX_PARTS


def test_few_parts_are_left_alone(tmp_path: Path) -> None:
    parts = [write(tmp_path, entry(k, 1)) for k in range(MAX_PARTS)]
    merge_parts(tmp_path, BYTES)
    assert parts_of(tmp_path) == parts


def test_damaged_parts_stay(tmp_path: Path) -> None:
    parts = [write(tmp_path, entry(k, 1), entry(100 + k, 1)) for k in range(MAX_PARTS + 3)]
    data = bytearray(parts[4].read_bytes())
    data[-30 - BYTES] ^= 1  # in its second piece
    parts[4].write_bytes(data)
    parts[6].write_bytes(b"something else")
    merge_parts(tmp_path, BYTES)
    left = parts_of(tmp_path)
    assert len(left) == 3 and parts[4] in left and parts[6] in left
    for part in (parts[4], parts[6]):
        part.unlink()
    keys = {struct.unpack_from("<Q", one)[0] for one in entries(tmp_path)}
    assert keys == {*range(MAX_PARTS + 3), *range(100, 103 + MAX_PARTS)} - {6, 104, 106}


def test_processes_merge_and_write_concurrently(tmp_path: Path) -> None:
    """Every entry survives, whichever process is first."""

    def work(turn: int) -> None:
        for k in range(30):
            write_part(tmp_path, BYTES, [entry(1000 * turn + k, 1)])
            merge_parts(tmp_path, BYTES)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    merge_parts(tmp_path, BYTES)
    assert {struct.unpack_from("<Q", one)[0] for one in entries(tmp_path)} == {
        1000 * turn + k for turn in range(6) for k in range(30)
    }
    assert len(parts_of(tmp_path)) <= 2 * MAX_PARTS


def test_parts_stay_until_the_new_one_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [write(tmp_path, entry(k, 1)) for k in range(MAX_PARTS + 1)]

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(index_parts.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        merge_parts(tmp_path, BYTES)
    assert sorted(tmp_path.iterdir()) == parts
    monkeypatch.undo()
    monkeypatch.setattr(index_parts, "_flush_names", lambda folder: os.fspath(folder) and full(0))
    with pytest.raises(OSError, match="No space left"):
        merge_parts(tmp_path, BYTES)
    assert len(parts_of(tmp_path)) == len(parts) + 1


class Taking:
    """Index that records its entries."""

    record_bytes, slots = BYTES, 0

    def __init__(self) -> None:
        self.taken: list[bytes] = []

    def unpack(self, device: object, packed: bytes) -> None:
        self.taken.append(packed)

    def packed(self, device: object, begin: int, end: int) -> bytes:
        return b"".join(entry(k, 1) for k in range(begin, end))


def test_parts_that_are_merged_while_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for k in range(MAX_PARTS + 1):
        write(tmp_path, entry(k, 1))
    index: Any = Taking()
    folder = IndexFolder(tmp_path, index, None)  # type: ignore[arg-type]
    load = folder._load
    monkeypatch.setattr(folder, "_load", lambda part: (load(part), merge_parts(tmp_path, BYTES)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        folder.load()
    assert b"".join(index.taken) == entry(0, 1) + b"".join(entry(k, 1) for k in range(MAX_PARTS + 1))


def test_a_process_that_changes_its_folder_writes_to_the_one_it_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    index: Any = Taking()
    folder = IndexFolder("known", index, None)  # type: ignore[arg-type]
    folder.load()
    index.slots = 3
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    folder.save()
    assert len(parts_of(tmp_path / "known")) == 1
    assert not any((tmp_path / "elsewhere").iterdir())
