# SPDX-License-Identifier: Apache-2.0
"""The cache of blocks of remote objects: ranges, damage, folders of other users."""

from __future__ import annotations

import stat
from pathlib import Path

import numpy as np
import pytest

from stoker.contract.errors import ArgumentError
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
