# SPDX-License-Identifier: Apache-2.0
"""Containers that are cut at every byte, spoilt, empty, and that vanish or change while a pipeline reads them."""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import containers
from stoker import ArgumentError, DataError, StokerError, fn
from stoker import tfrecord as features
from stoker.readers import _index_files
from stoker.readers._index_files import index_file
from tests.containers.data import epoch, pipeline, rows

FIRST = [b"the first", b"2", b"a third one"]
SECOND = [b"of another shard", b"5"]
OTHER = [bytes(255 - byte for byte in record) for record in FIRST]  # of the same sizes
DECLARED = {"s": features.FixedLenFeature((), features.string)}

pytestmark = pytest.mark.filterwarnings("ignore:.*is damaged at byte", "ignore:.*unclosed")


@dataclass(frozen=True)
class Kind:
    """A format: ``write`` returns the bytes of a file with records, and ``read`` the node of paths of files."""

    name: str
    write: Callable[[Sequence[bytes], int], bytes]
    read: Callable[..., Any]
    step: int = 1  # of the places at which whole pipelines are tried; files of pages are long


def _npy(records: Sequence[bytes], first: int) -> bytes:
    file = io.BytesIO()
    np.save(file, np.frombuffer(records[0], np.uint8))
    return file.getvalue()


def _caffe2(records: Sequence[bytes], first: int) -> bytes:
    return containers.lmdb(
        {
            f"{first + i:03}".encode(): containers.tensors(
                containers.tensor(record, 4, (1,)), containers.tensor([i], 2, (1,))
            )
            for i, record in enumerate(records)
        }
    )


def _numbered(records: Sequence[bytes], first: int, form: str) -> list[tuple[str, bytes]]:
    return [(form.format(first + i), record) for i, record in enumerate(records)]


KINDS = {
    kind.name: kind
    for kind in (
        Kind("tfrecord", lambda r, first: containers.tfrecord(containers.example({"s": x}) for x in r),
             lambda paths, **order: fn.readers.tfrecord(path=paths, features=DECLARED, **order)["s"]),
        Kind("mxnet", lambda r, first: containers.recordio(containers.image_record(1.0, x) for x in r)[0],
             lambda paths, **order: fn.readers.mxnet(path=paths, **order)[0]),
        Kind("webdataset", lambda r, first: containers.tar(_numbered(r, first, "{:03}.bin")),
             lambda paths, **order: fn.readers.webdataset(paths=paths, ext="bin", **order), step=23),
        Kind("zip", lambda r, first: containers.stored_zip(_numbered(r, first, "c/{:03}.jpg")),
             lambda paths, **order: fn.readers.zip(paths=paths, **order)[0]),
        Kind("bagz", lambda r, first: containers.bagz(r), lambda paths, **order: fn.readers.bagz(paths=paths, **order)),
        Kind("caffe", lambda r, first: containers.lmdb(
                {f"{first + i:03}".encode(): containers.datum(data=x, label=i) for i, x in enumerate(r)}),
             lambda paths, **order: fn.readers.caffe(path=paths, **order)[0], step=131),
        Kind("caffe2", _caffe2, lambda paths, **order: fn.readers.caffe2(path=paths, **order)[0], step=131),
        Kind("numpy", _npy, lambda paths, **order: fn.readers.numpy(files=paths, **order)),
    )
}  # fmt: skip
CHECKSUMS = ("tfrecord",)  # formats whose readers never return a changed record


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def wanted_of(kind: Kind, *shards: Sequence[bytes]) -> list[bytes]:
    return [record for shard in shards for record in (shard[:1] if kind.name == "numpy" else shard)]


def tolerant(kind: Kind, paths: list[str]) -> list[bytes] | None:
    """Return the records that a pipeline delivers without the bad ones; None if it refuses the files."""
    try:
        return [row[0].tobytes() for row in rows(lambda: kind.read(paths, on_error="skip"), error_limit=1.0)]
    except StokerError as error:
        assert str(error)
        return None


def is_part(found: Sequence[bytes], wanted: Sequence[bytes]) -> bool:
    """Return whether records are some of the wanted ones, in their order."""
    rest = iter(wanted)
    return all(record in rest for record in found)


def test_a_file_that_is_cut_gives_no_other_record(kind: Kind, tmp_path: Path) -> None:
    whole, path = kind.write(FIRST, 0), tmp_path / "a.bin"
    wanted = wanted_of(kind, FIRST)
    path.write_bytes(whole)
    assert tolerant(kind, [str(path)]) == wanted
    for size in range(0, len(whole), kind.step):
        path.write_bytes(whole[:size])
        found = tolerant(kind, [str(path)])
        assert found is None or is_part(found, wanted), size
        assert size or found is None, "a file without bytes is refused"


def test_lmdb_cut_at_every_byte_has_no_records(tmp_path: Path) -> None:
    whole, path = KINDS["caffe"].write(FIRST, 0), tmp_path / "data.mdb"
    path.write_bytes(whole)
    assert not index_file("lmdb", str(path), None).damage
    with path.open("r+b") as file:
        for size in range(len(whole) - 1, -1, -1):
            file.truncate(size)
            found = index_file("lmdb", str(path), None)
            assert found.damage or not len(found), size


def test_a_changed_byte_is_no_crash(kind: Kind, tmp_path: Path) -> None:
    """Formats without checksums may return other records, and never more than there are bytes for."""
    whole, path = kind.write(FIRST, 0), tmp_path / "a.bin"
    wanted = wanted_of(kind, FIRST)
    for at in range(0, len(whole), kind.step):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        found = tolerant(kind, [str(path)])
        assert found is None or sum(map(len, found)) <= len(whole), at
        assert found is None or kind.name not in CHECKSUMS or is_part(found, wanted), at


def test_a_file_without_bytes_next_to_good_ones(kind: Kind, tmp_path: Path) -> None:
    """The file is refused by its name, or it has no records."""
    paths = [str(tmp_path / name) for name in ("a.bin", "empty.bin", "b.bin")]
    for path, content in zip(paths, (kind.write(FIRST, 0), b"", kind.write(SECOND, 3)), strict=True):
        Path(path).write_bytes(content)
    try:
        found = [row[0].tobytes() for row in rows(lambda: kind.read(paths))]
    except (ArgumentError, DataError) as error:
        assert "empty.bin" in str(error)
    else:
        assert found == wanted_of(kind, FIRST, SECOND)


def write_shards(kind: Kind, folder: Path) -> list[str]:
    paths = [str(folder / "a.bin"), str(folder / "b.bin")]
    for path, records, first in zip(paths, (FIRST, SECOND), (0, 3), strict=True):
        Path(path).write_bytes(kind.write(records, first))
    return paths


def change(path: str, kind: Kind, way: str) -> None:
    """Change a shard while a pipeline reads another one. Its records keep their places."""
    changed = kind.write([bytes(255 - byte for byte in record) for record in SECOND], 3)
    assert len(changed) == os.path.getsize(path)
    if way == "vanish":
        os.unlink(path)
    elif way == "replace":
        Path(f"{path}.new").write_bytes(changed)
        os.replace(f"{path}.new", path)
    elif way == "rewrite":
        Path(path).write_bytes(changed)
    elif way == "cut":
        os.truncate(path, 0)
    else:
        with open(path, "ab") as file:
            file.write(b"more")


@pytest.mark.parametrize("way", ["vanish", "replace", "rewrite", "cut", "grow"])
def test_a_shard_that_changes_while_a_pipeline_runs_gives_no_other_record(way: str, kind: Kind, tmp_path: Path) -> None:
    """The rows of the other shard stay, and the error names the file. A whole file (NumPy) may have any content."""
    paths = write_shards(kind, tmp_path)
    os.utime(paths[1], (1e9, 1e9))
    with pipeline(lambda: kind.read(paths, on_error="skip"), batch_size=1, prefetch_queue_depth=1,
                  error_limit=1.0) as pipe:  # fmt: skip
        pipe.build()
        change(paths[1], kind, way)
        found = [row[0].tobytes() for row in epoch(pipe)]
        reasons = [str(bad.reason) for bad in pipe.errors]
    if kind.name == "numpy" and way in ("replace", "rewrite", "grow"):
        return
    assert found == wanted_of(kind, FIRST)
    assert reasons and all("b.bin" in reason for reason in reasons)
    assert way == "vanish" or kind.name == "numpy" or "has changed" in reasons[0]


def test_an_open_file_that_is_replaced_is_read_in_its_old_form(tmp_path: Path) -> None:
    kind = KINDS["bagz"]
    paths = write_shards(kind, tmp_path)
    with pipeline(lambda: kind.read(paths[:1]), batch_size=1, prefetch_queue_depth=1, exec_async=False) as pipe:
        assert pipe.run()[0][0].tobytes() == FIRST[0]
        Path(f"{paths[0]}.new").write_bytes(kind.write(OTHER, 0))
        os.replace(f"{paths[0]}.new", paths[0])
        assert [row[0].tobytes() for row in epoch(pipe)] == FIRST[1:]


def test_a_file_of_a_users_index_may_grow(tmp_path: Path) -> None:
    """The index says where records are; it may be older than the file."""
    kind, path, index = KINDS["tfrecord"], tmp_path / "a.bin", tmp_path / "a.idx"
    path.write_bytes(kind.write(FIRST, 0))
    sizes = [len(kind.write([record], 0)) for record in FIRST]
    index.write_text("".join(f"{sum(sizes[:k])} {size}\n" for k, size in enumerate(sizes)))
    with pipeline(lambda: kind.read([str(path)], index_path=str(index))) as pipe:
        pipe.build()
        with path.open("ab") as file:
            file.write(kind.write(SECOND, 3))
        assert [row[0].tobytes() for row in epoch(pipe)] == FIRST


# ---- entries of the index cache, names, keys ----


@pytest.mark.parametrize("name", ["tfrecord", "mxnet", "webdataset", "zip", "caffe"])
def test_spoilt_entries_of_the_index_cache_are_made_again(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cut at every byte, and with each byte changed: the records are those of the file."""
    kind, scan = KINDS[name], {"mxnet": "recordio", "webdataset": "tar", "caffe": "lmdb"}.get(name, name)
    path, cache = tmp_path / "a.bin", tmp_path / "cache"
    cache.mkdir(mode=0o700)
    monkeypatch.setattr(_index_files, "_LEAST_BYTES", 0)
    path.write_bytes(kind.write(FIRST, 0))
    os.utime(path, (1e9, 1e9))
    wanted = index_file(scan, str(path), None)
    index_file(scan, str(path), cache)
    (entry,) = cache.iterdir()
    whole = entry.read_bytes()
    spoilt = [whole[:size] for size in range(len(whole))]
    spoilt += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    for content in spoilt:
        entry.write_bytes(content)
        found = index_file(scan, str(path), cache)
        assert np.array_equal(found.offset, wanted.offset) and np.array_equal(found.length, wanted.length)
        assert found.names == wanted.names and not found.damage
    assert entry.read_bytes() == whole, "the last one was made again"


def test_records_with_equal_keys(tmp_path: Path) -> None:
    """Tar members with a name twice are samples of their own or the first one; zip archives with one are refused."""
    twice = [("1.bin", b"a"), ("2.bin", b"b"), ("1.bin", b"c"), ("1.bin", b"d")]
    path = tmp_path / "a.bin"
    path.write_bytes(containers.tar(twice))
    assert tolerant(KINDS["webdataset"], [str(path)]) == [b"a", b"b", b"c"]  # the last two are one sample
    path.write_bytes(containers.stored_zip([("c/1.jpg", b"x"), ("c/2.jpg", b"y")]).replace(b"c/2.jpg", b"c/1.jpg"))
    with pytest.raises(ArgumentError, match="files of different names"):
        rows(lambda: KINDS["zip"].read([str(path)]))


@pytest.mark.parametrize("claimed", [0, 5, 1 << 31, 0xFFFFFFFE])
def test_members_of_zip_archives_with_wrong_sizes(claimed: int, tmp_path: Path) -> None:
    """Sizes of the directory that are not those of the stored bytes, such as a bomb's, take no memory."""
    whole, path = bytearray(KINDS["zip"].write(FIRST, 0)), tmp_path / "a.bin"
    at = whole.index(b"PK\1\2") + 20
    for packed, plain_size in ((claimed, len(FIRST[0])), (len(FIRST[0]), claimed), (claimed, claimed)):
        struct.pack_into("<II", whole, at, packed, plain_size)
        path.write_bytes(whole)
        found = tolerant(KINDS["zip"], [str(path)])
        assert found is None or sum(map(len, found)) <= len(whole)
