# SPDX-License-Identifier: Apache-2.0
"""The cache of blocks of remote objects: ranges, damage, folders of other users."""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import containers
from stoker.contract.errors import ArgumentError
from stoker.contract.storage import RecordForm
from stoker.native import _native
from stoker.remote.block_cache import BLOCK_BYTES, BlockCache, RemoteObject

SIZE = BLOCK_BYTES + 200_000
CONTENT = np.random.default_rng(0).bytes(SIZE)
OBJECT = RemoteObject("https://x/y", SIZE, None, "0" * 32)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STOKER_REMOTE_CACHE", str(tmp_path / "blocks"))
    return tmp_path / "blocks"


def filled() -> BlockCache:
    cache = BlockCache.open(in_flight=1)
    assert cache is not None
    cache.write(OBJECT, 0, CONTENT[:BLOCK_BYTES])
    cache.write(OBJECT, 1, CONTENT[BLOCK_BYTES:])
    return cache


def test_ranges_are_those_of_the_object(folder: Path) -> None:
    cache = filled()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    whole = (0, BLOCK_BYTES), (1, BLOCK_BYTES), (BLOCK_BYTES - 1, BLOCK_BYTES)
    for begin, end in ((0, 0), (0, 1), (16383, 16385), (16384, 131072), *whole):
        assert cache.read(OBJECT, 0, begin, end) == CONTENT[begin:end]
    for begin, end in ((0, 200_000), (196_608, 200_000), (199_999, 200_000), (70_000, 130_000)):
        assert cache.read(OBJECT, 1, begin, end) == CONTENT[BLOCK_BYTES + begin : BLOCK_BYTES + end]
    assert cache.read(OBJECT, 2, 0, 1) is None


@pytest.mark.parametrize("at", [0, 16_383, 16_384, 199_999, 200_000, 200_048])
def test_a_damaged_piece_is_not_returned(at: int, folder: Path) -> None:
    cache = filled()
    path = folder / OBJECT.identity / "1"
    data = bytearray(path.read_bytes())
    data[at] ^= 1  # a byte of the block, or of a checksum
    path.write_bytes(data)
    assert cache.read(OBJECT, 1, 0, 200_000) is None
    piece = at // 16_384 if at < 200_000 else (at - 200_000) // 4
    for i in range(13):
        begin, end = i * 16_384, min(i * 16_384 + 100, 200_000)
        found = cache.read(OBJECT, 1, begin, end)
        assert found == (None if i == piece else CONTENT[BLOCK_BYTES + begin : BLOCK_BYTES + end])


@pytest.mark.parametrize("cut", [1, 16, 65_536])
def test_a_block_that_is_cut_off_is_not_returned(cut: int, folder: Path) -> None:
    cache = filled()
    path = folder / OBJECT.identity / "1"
    path.write_bytes(path.read_bytes()[:-cut])
    assert cache.read(OBJECT, 1, 0, 10) is None


def test_a_folder_that_others_may_write_to_is_not_used(folder: Path) -> None:
    cache = filled()
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=r"blocks of remote objects are not kept.*STOKER_REMOTE_CACHE"):
        assert BlockCache.open(in_flight=1) is None
    with pytest.warns(RuntimeWarning, match="are not kept"):
        cache.write(OBJECT, 2, b"")


def test_a_limit_below_the_blocks_in_flight_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_REMOTE_CACHE_MIB", "7")
    with pytest.raises(ArgumentError, match="STOKER_REMOTE_CACHE_MIB of at least 8"):
        BlockCache.open(in_flight=2)


def native_reader(cache: BlockCache, ranges: list[tuple[int, int]], form: RecordForm = RecordForm.STORED) -> Any:
    """Return the native reader of (offset, length) of the object."""
    numbers = np.asarray(ranges, np.uint64).reshape(-1, 2)
    columns = np.zeros(len(ranges), np.uint32), numbers[:, 0].copy(), numbers[:, 1].copy()
    return cache.native([OBJECT], (*columns, np.full(len(ranges), form, np.uint8)), BLOCK_BYTES)


def test_the_native_reader_returns_what_the_plain_one_does(folder: Path) -> None:
    cache = filled()
    rng = np.random.default_rng(4)
    ranges = [(0, 0), (0, 1), (0, SIZE), (SIZE - 1, 1), (SIZE, 0), (BLOCK_BYTES - 1, 2), (BLOCK_BYTES, 200_000)]
    for _ in range(300):
        offset = int(rng.integers(0, SIZE)) if rng.random() < 0.5 else BLOCK_BYTES - int(rng.integers(0, 40_000))
        ranges.append((offset, int(rng.integers(0, min(SIZE - offset, 100_000) + 1))))
    reader = native_reader(cache, ranges)
    assert reader.lengths().tolist() == [length for _, length in ranges]
    for i, (offset, length) in enumerate(ranges):
        assert reader.read(i) == CONTENT[offset : offset + length]
    (folder / OBJECT.identity / "1").unlink()
    for i, (offset, length) in enumerate(ranges):
        needs = length > 0 and offset + length > BLOCK_BYTES
        assert reader.read(i) == (None if needs else CONTENT[offset : offset + length])


@pytest.mark.parametrize("at", [0, 16_383, 16_384, 199_999, 200_000, 200_048])
def test_the_native_reader_returns_no_damaged_piece(at: int, folder: Path) -> None:
    cache = filled()
    path = folder / OBJECT.identity / "1"
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    ranges = [(BLOCK_BYTES + i * 16_384, min(100, 200_000 - i * 16_384)) for i in range(13)]
    reader = native_reader(cache, ranges)
    piece = at // 16_384 if at < 200_000 else (at - 200_000) // 4
    for i, (offset, length) in enumerate(ranges):
        assert reader.read(i) == (None if i == piece else CONTENT[offset : offset + length])
    path.write_bytes(data[:-1])
    assert reader.read(5) is None


def test_the_native_reader_checks_the_frames_of_tfrecord(folder: Path) -> None:
    bodies = [b"", b"a", b"x" * 50_000, np.random.default_rng(1).bytes(BLOCK_BYTES + 70_000), b"end"]
    framed = [containers.tfrecord([b]) for b in bodies[:3]] + [tfrecord_of(bodies[3]), containers.tfrecord([b"end"])]
    data = b"".join(framed)
    one = RemoteObject("https://x/z", len(data), None, "1" * 32)
    cache = BlockCache.open(in_flight=1)
    assert cache is not None
    starts = np.cumsum([0, *map(len, framed)])[:-1]
    columns = np.zeros(5, np.uint32), starts.astype(np.uint64), np.asarray([len(f) for f in framed], np.uint64)

    def found(content: bytes, form: RecordForm) -> list[bytes | None]:
        for block in range(-(-len(content) // BLOCK_BYTES)):
            cache.write(one, block, content[block * BLOCK_BYTES : (block + 1) * BLOCK_BYTES])
        reader = cache.native([one], (*columns, np.full(5, form, np.uint8)), BLOCK_BYTES)
        return [reader.read(i) for i in range(5)]

    assert found(data, RecordForm.TFRECORD) == bodies
    for inside, checked in (
        (0, True),
        (8, True),
        (12, False),
        (len(framed[2]) - 1, False),
    ):  # length, its sum, data, sum
        spoilt = bytearray(data)
        spoilt[int(starts[2]) + inside] ^= 1
        wanted = [*bodies[:2], None, *bodies[3:]]
        assert found(bytes(spoilt), RecordForm.TFRECORD) == wanted
        loose = found(bytes(spoilt), RecordForm.TFRECORD_UNCHECKED)
        assert (loose[2] is None) == checked and loose[:2] + loose[3:] == wanted[:2] + wanted[3:]


def tfrecord_of(body: bytes) -> bytes:
    """Return a large record; the plain checksum of ``containers`` would take seconds."""

    def masked(data: bytes) -> bytes:
        crc = _native.crc32c(data)
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(body))
    return length + masked(length) + body + masked(body)


def test_the_native_reader_joins_the_parts_of_recordio(folder: Path) -> None:
    magic, rng = containers.MAGIC, np.random.default_rng(5)
    bodies = [b"", b"a", magic, b"abcd" + magic + b"xy" + magic, magic * 3 + b"z", rng.bytes(BLOCK_BYTES + 50_001)]
    bodies += [rng.bytes(50_000) + magic + rng.bytes(7)]
    data, starts = containers.recordio(bodies)
    ends = [*starts[1:], len(data)]
    one = RemoteObject("https://x/r", len(data), None, "2" * 32)
    cache = BlockCache.open(in_flight=1)
    assert cache is not None
    ranges = np.asarray([(a, b - a) for a, b in zip(starts, ends, strict=True)], np.uint64)
    columns = np.zeros(len(bodies), np.uint32), ranges[:, 0].copy(), ranges[:, 1].copy()

    def found(content: bytes) -> list[bytes | None]:
        for block in range(-(-len(content) // BLOCK_BYTES)):
            cache.write(one, block, content[block * BLOCK_BYTES : (block + 1) * BLOCK_BYTES])
        reader = cache.native([one], (*columns, np.full(len(bodies), RecordForm.RECORDIO, np.uint8)), BLOCK_BYTES)
        assert reader.lengths().tolist() == ranges[:, 1].tolist()
        read = [reader.read(i) for i in range(len(bodies))]
        return [None if r is None else r[8 : 8 + int.from_bytes(r[:8], "little")] for r in read]

    assert found(data) == bodies
    for inside in (0, 3, 4, 7, 13, 16, 19):  # magic number and word of the first part, then of the second
        spoilt = bytearray(data)
        spoilt[starts[3] + inside] ^= 0xFF
        assert found(bytes(spoilt)) == [*bodies[:3], None, *bodies[4:]], inside
    columns = columns[0][:1], np.zeros(1, np.uint64), np.full(1, 7, np.uint64)
    short = cache.native([one], (*columns, np.full(1, RecordForm.RECORDIO, np.uint8)), BLOCK_BYTES)
    assert short.lengths().tolist() == [8]
    assert short.read(0) is None


@pytest.mark.parametrize("size", [0, 1, 63, 127, 128, 129, 255, 256, 257, 1000, 70_000])
def test_digests_are_those_of_hashlib(size: int) -> None:
    data = np.random.default_rng(size).bytes(size)
    assert _native.blake2b_128(data) == hashlib.blake2b(data, digest_size=16).digest()


def test_the_native_reader_refuses_what_does_not_fit(folder: Path) -> None:
    cache = filled()
    with pytest.raises(ValueError, match="inside of their objects"):
        native_reader(cache, [(SIZE, 1)])
    with pytest.raises(IndexError):
        native_reader(cache, [(0, 8)]).read(1)


def test_the_native_reader_marks_blocks_as_used(folder: Path) -> None:
    cache = filled()
    path = folder / OBJECT.identity / "0"
    os.utime(path, (1000, 1000))
    assert native_reader(cache, [(5, 7)]).read(0) == CONTENT[5:12]
    assert time.time() - path.stat().st_mtime < 100
