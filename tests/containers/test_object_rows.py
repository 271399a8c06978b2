# SPDX-License-Identifier: Apache-2.0
"""Rows of objects, with a server in memory: those of files, native once their blocks are kept, also by manifests.

``make test-containers`` does the same with real servers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import containers
from stoker import DataError, fn
from stoker import tfrecord as features
from stoker.inspection.manifest import write_manifest
from stoker.readers._fetching import AsyncStorage
from stoker.readers._manifest_file import entries_path
from stoker.remote import block_cache
from stoker.remote import store as stores
from stoker.remote.block_cache import RemoteObject, identity_of
from tests.containers.data import epoch, pipeline, plain, rows

COUNTS = [4, 0, 9, 1]  # records of the shards
BLOCK = 512  # so that records are in several blocks


class FakeClient:
    """Requests to objects in memory, by their addresses."""

    objects: dict[str, bytes] = {}  # noqa: RUF012 - of one test
    tags: dict[str, str] = {}  # noqa: RUF012
    requests: list[str] = []  # noqa: RUF012

    def head(self, path: str) -> RemoteObject:
        size, tag = len(self.objects[path]), self.tags.get(path)
        return RemoteObject(path, size, tag, identity_of(path, size, tag))

    def get(self, one: RemoteObject, begin: int, end: int) -> memoryview:
        self.requests.append(one.path)
        if self.head(one.path) != one:
            raise DataError(f"'{one.path}' has changed")
        return memoryview(self.objects[one.path])[begin:end]

    def retried(self, path: str, offset: int, ended: threading.Event, attempt: Any, *, length: int = 0) -> Any:
        return attempt()


@pytest.fixture(autouse=True)
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[FakeClient]:
    monkeypatch.setenv("STOKER_REMOTE_CACHE", str(tmp_path / "blocks"))
    monkeypatch.setenv("STOKER_INDEX_CACHE", str(tmp_path / "indexes"))
    for name in ("objects", "tags"):
        monkeypatch.setattr(FakeClient, name, {})
    monkeypatch.setattr(FakeClient, "requests", [])
    monkeypatch.setattr(stores, "Client", FakeClient)
    for module in (block_cache, stores):
        monkeypatch.setattr(module, "BLOCK_BYTES", BLOCK)
    return FakeClient


@pytest.fixture
def by_python(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the numbers of the records that Python reads."""
    found: list[int] = []
    take = AsyncStorage.take

    def noted(self: AsyncStorage, records: Any) -> Any:
        found.extend(records)
        return take(self, records)

    monkeypatch.setattr(AsyncStorage, "take", noted)
    return found


def content(i: int) -> bytes:
    return containers.MAGIC * (i % 3) + np.random.default_rng(i).bytes(i * 137 % 1500)


def of_tfrecord(some: range) -> bytes:
    return containers.tfrecord([containers.example({"s": content(i), "n": [i]}) for i in some])


def of_recordio(some: range) -> bytes:
    return containers.recordio([containers.image_record([1.5, i], content(i)) for i in some])[0]


def of_tar(some: range) -> bytes:
    return containers.tar((f"{i:03}.{e}", content(i + k)) for i in some for k, e in enumerate(("a", "b")))


def of_bagz(some: range) -> bytes:
    return containers.bagz([content(i) for i in some])


def read_tfrecord(path: Any, **order: Any) -> Any:
    text, number = features.FixedLenFeature((), features.string, ""), features.FixedLenFeature([1], features.int64)
    wanted = {"s": text, "n": number}
    return list(fn.readers.tfrecord(path=path, features=wanted, **order).values())


FORMATS: dict[str, tuple[Callable[[range], bytes], Callable[..., Any]]] = {
    "tfrecord": (of_tfrecord, read_tfrecord),
    "rec": (of_recordio, lambda path, **order: fn.readers.mxnet(path=path, **order)),
    "tar": (of_tar, lambda path, **order: fn.readers.webdataset(paths=path, ext=["a", "b"], **order)),
    "bag": (of_bagz, lambda path, **order: fn.readers.bagz(path, **order)),
}


def shards_of(kind: str, folder: Path, server: type[FakeClient]) -> tuple[list[str], list[str]]:
    """Return the paths of files, and the addresses of objects with the same bytes."""
    files, addresses, begin = [], [], 0
    for k, count in enumerate(COUNTS):
        data = FORMATS[kind][0](range(begin, begin + count))
        begin += count
        (folder / f"{k}.{kind}").write_bytes(data)
        files.append(str(folder / f"{k}.{kind}"))
        addresses.append(f"s3://bucket/{k}.{kind}")
        server.objects[addresses[-1]] = data
        if k != 2:
            server.tags[addresses[-1]] = f'"{k}"'  # one without a tag
    return files, addresses


def forget_blocks(folder: Path) -> None:
    for block in (folder / "blocks").rglob("*"):
        if block.is_file():
            block.unlink()


@pytest.mark.parametrize("by_manifest", [False, True])
@pytest.mark.parametrize("kind", FORMATS)
def test_rows_are_those_of_files_and_native_from_kept_blocks(
    kind: str, by_manifest: bool, tmp_path: Path, server: type[FakeClient], by_python: list[int]
) -> None:
    files, addresses = shards_of(kind, tmp_path, server)
    read, order = FORMATS[kind][1], {"random_shuffle": True}
    wanted = [plain(r) for r in rows(lambda: read(files, **order))]
    assert len(wanted) == sum(COUNTS)
    paths: Any = addresses
    if by_manifest:
        paths = str(tmp_path / "all.manifest")
        write_manifest(paths, addresses)
    assert [plain(r) for r in rows(lambda: read(paths, **order))] == wanted
    by_python.clear()
    server.requests.clear()
    assert [plain(r) for r in rows(lambda: read(paths, **order))] == wanted
    assert not by_python  # the blocks are kept
    assert not server.requests
    forget_blocks(tmp_path)
    assert [plain(r) for r in rows(lambda: read(paths, **order))] == wanted
    assert server.requests


@pytest.mark.parametrize("kind", ["tfrecord", "rec"])
def test_damaged_blocks_are_loaded_again(
    kind: str, tmp_path: Path, server: type[FakeClient], by_python: list[int]
) -> None:
    files, addresses = shards_of(kind, tmp_path, server)
    read, path = FORMATS[kind][1], str(tmp_path / "all.manifest")
    write_manifest(path, addresses)
    wanted = [plain(r) for r in rows(lambda: read(files))]
    assert [plain(r) for r in rows(lambda: read(path))] == wanted
    for block in (tmp_path / "blocks").rglob("1"):
        data = bytearray(block.read_bytes())
        data[len(data) // 2] ^= 1
        block.write_bytes(data)
    by_python.clear()
    assert [plain(r) for r in rows(lambda: read(path))] == wanted
    assert by_python


def test_a_damaged_record_is_an_error_of_its_row(tmp_path: Path, server: type[FakeClient]) -> None:
    _, addresses = shards_of("rec", tmp_path, server)
    path = str(tmp_path / "all.manifest")
    write_manifest(path, addresses)
    forget_blocks(tmp_path)
    starts = containers.recordio([containers.image_record([1.5, i], content(i)) for i in range(4, 13)])[1]
    data = bytearray(server.objects[addresses[2]])
    data[starts[3]] ^= 1
    server.objects[addresses[2]] = bytes(data)
    with pipeline(lambda: FORMATS["rec"][1](path), on_error="skip") as pipe:
        assert [int(labels[1]) for _, labels in epoch(pipe)] == [i for i in range(14) if i != 7]


def test_a_manifest_that_is_damaged_is_an_error_of_its_rows(tmp_path: Path, server: type[FakeClient]) -> None:
    _, addresses = shards_of("tfrecord", tmp_path, server)
    path = str(tmp_path / "all.manifest")
    write_manifest(path, addresses)
    entries = bytearray(Path(entries_path(path)).read_bytes())
    entries[32 + 20 * 5] ^= 1  # the range of sample 5
    Path(entries_path(path)).write_bytes(entries)
    with pipeline(lambda: read_tfrecord(path)) as pipe, pytest.raises(DataError, match="range of sample 5"):
        epoch(pipe)
    with pipeline(lambda: read_tfrecord(path), on_error="skip") as pipe:
        assert [int(n[0]) for _, n in epoch(pipe)] == [i for i in range(14) if i != 5]


def test_an_object_that_was_replaced_is_an_error_of_its_rows(tmp_path: Path, server: type[FakeClient]) -> None:
    _, addresses = shards_of("tfrecord", tmp_path, server)
    path = str(tmp_path / "all.manifest")
    write_manifest(path, addresses)
    forget_blocks(tmp_path)
    server.tags[addresses[0]] = '"other"'
    with pipeline(lambda: read_tfrecord(path), on_error="skip") as pipe:
        assert [int(n[0]) for _, n in epoch(pipe)] == list(range(4, 14))
