# SPDX-License-Identifier: Apache-2.0
"""Cache of the indexes of container files: validity, damage, limits, folders of others."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np
import pytest

from containers import tfrecord
from stoker.readers import _index_files
from stoker.readers._index_files import ContainerIndex, index_files


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a cache folder that keeps the indexes of files of any size."""
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(_index_files, "_LEAST_BYTES", 1)
    return tmp_path / "cache"


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return the list of files that are scanned from now on."""
    done: list[bytes] = []
    scan = _index_files.SCANS["tfrecord"]

    def counted(path: bytes) -> ContainerIndex:
        done.append(path)
        return scan(path)

    monkeypatch.setitem(_index_files.SCANS, "tfrecord", counted)
    return done


def write(path: Path, count: int, *, age_s: float = 100.0) -> str:
    path.write_bytes(tfrecord([bytes([i]) * i for i in range(count)]))
    written = time.time() - age_s
    os.utime(path, (written, written))
    return str(path)


def lengths(path: str) -> list[int]:
    return index_files("tfrecord", [path])[0].length.tolist()


def test_a_file_is_scanned_once_while_it_does_not_change(cache: Path, tmp_path: Path, scans: list[bytes]) -> None:
    path = write(tmp_path / "a", 3)
    for _ in range(3):
        assert lengths(path) == [16, 17, 18]
    assert len(scans) == 1
    write(tmp_path / "a", 5)
    assert lengths(path) == [16, 17, 18, 19, 20] and len(scans) == 2
    status = (tmp_path / "a").stat()
    (tmp_path / "b").write_bytes(Path(path).read_bytes())
    os.utime(tmp_path / "b", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(tmp_path / "b", path)  # of equal size and time
    assert lengths(path) == [16, 17, 18, 19, 20] and len(scans) == 3
    assert len(list(cache.iterdir())) == 1


def test_a_file_that_may_still_be_written_is_not_cached(cache: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "a", 3, age_s=-100)
    assert lengths(path) == [16, 17, 18] and not cache.exists()


def test_damage_is_cached_too(cache: Path, tmp_path: Path, scans: list[bytes]) -> None:
    path = write(tmp_path / "a", 3)
    os.truncate(path, 40)
    os.utime(path, (1, 1))
    first, second = (index_files("tfrecord", [path])[0] for _ in range(2))
    assert first.damage and (first.damage, first.damage_offset) == (second.damage, second.damage_offset)
    assert len(scans) == 1


def test_a_damaged_entry_is_made_again(cache: Path, tmp_path: Path, scans: list[bytes]) -> None:
    path = write(tmp_path / "a", 4)
    lengths(path)
    entry = next(cache.iterdir())
    whole = entry.read_bytes()
    rng = np.random.default_rng(1)
    for size in [*range(0, len(whole), 7), len(whole) - 1]:
        entry.write_bytes(whole[:size])
        assert lengths(path) == [16, 17, 18, 19]
    for at in rng.integers(0, len(whole), 40):
        entry.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert lengths(path) == [16, 17, 18, 19]
    assert len(scans) > 40 and entry.read_bytes() == whole


def test_the_cache_has_a_limit_and_can_be_off(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scans: list[bytes]
) -> None:
    monkeypatch.setenv("STOKER_INDEX_CACHE_MIB", "0")
    paths = [write(tmp_path / name, 3) for name in "abc"]
    index_files("tfrecord", paths)
    assert len(list(cache.iterdir())) == 1, "the last entry alone"
    monkeypatch.setenv("STOKER_INDEX_CACHE", "off")
    index_files("tfrecord", paths)
    assert len(scans) == 6


def test_a_folder_of_others_is_not_used(cache: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "a", 3)
    cache.mkdir()
    cache.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=r"indexes of container files are not kept.*STOKER_INDEX_CACHE"):
        assert lengths(path) == [16, 17, 18]
    assert not list(cache.iterdir())


def test_a_folder_that_cannot_be_written_is_a_warning(cache: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "a", 3)
    cache.write_bytes(b"a file")
    with pytest.warns(RuntimeWarning, match=r"indexes of container files are not kept.*can be written"):
        assert lengths(path) == [16, 17, 18]
