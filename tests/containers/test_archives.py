# SPDX-License-Identifier: Apache-2.0
"""``readers.zip``, ``bagz``, ``mds``, ``caffe`` and ``sequence``: values, order, and faults of their files."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import containers
from stoker import ArgumentError, DataError, fn, pipeline_def, types
from tests.containers.data import plain, rows

Files = list[bytes]
SIZES = [5, 0, 3000, 64, 1, 70_000, 17]


def contents() -> Files:
    return [np.random.default_rng(i).bytes(n) for i, n in enumerate(SIZES)]


def zip_reader(folder: Path) -> Callable[..., Any]:
    (folder / "a.zip").write_bytes(containers.stored_zip((f"c/{i}.jpg", c) for i, c in enumerate(contents())))
    return lambda **order: fn.readers.zip(paths=str(folder / "a.zip"), **order)[0]


def bagz_reader(folder: Path) -> Callable[..., Any]:
    halves = contents()[:3], contents()[3:]
    for i, half in enumerate(halves):
        (folder / f"{i}.bag").write_bytes(containers.bagz(half))
    return lambda **order: fn.readers.bagz(paths=[str(folder / f"{i}.bag") for i in range(2)], **order)


def mds_reader(folder: Path) -> Callable[..., Any]:
    samples = [{"n": struct.pack("<q", i), "data": c, "t": b"text"} for i, c in enumerate(contents())]
    columns = {"n": ("int", 8), "data": ("bytes", None), "t": ("str", None)}
    containers.mds(folder / "mds", samples, columns, per_shard=3)
    return lambda **order: fn.readers.mds(path=str(folder / "mds"), columns=["data"], **order)["data"]


def caffe_reader(folder: Path) -> Callable[..., Any]:
    records = {f"{i:03}".encode(): containers.datum(data=c, label=i) for i, c in enumerate(contents())}
    (folder / "data.mdb").write_bytes(containers.lmdb(records))
    return lambda **order: fn.readers.caffe(path=str(folder), **order)[0]


READERS = {"zip": zip_reader, "bagz": bagz_reader, "mds": mds_reader, "caffe": caffe_reader}


@pytest.mark.parametrize("make", READERS.values(), ids=READERS)
@pytest.mark.parametrize("settings", [{"batch_size": 1, "num_threads": 1}, {"batch_size": 3, "num_threads": 4}])
def test_rows_are_those_of_files_in_every_order(
    make: Callable[..., Any], settings: dict[str, Any], tmp_path: Path
) -> None:
    for i, content in enumerate(contents()):
        (tmp_path / f"{i}.bin").write_bytes(content)
    names = [str(tmp_path / f"{i}.bin") for i in range(len(SIZES))]
    read = make(tmp_path)
    for order in (
        {}, {"random_shuffle": True, "seed": 5}, {"sampler": [3, 3, 0]}, {"num_shards": 2, "shard_id": 1},
        {"random_shuffle": True, "num_shards": 3, "shard_id": 0, "seed": 1},
    ):  # fmt: skip
        wanted = rows(lambda order=order: fn.readers.file(files=names, **order)[0], **settings)
        found = rows(lambda order=order: read(**order), **settings)
        assert [row[0].tobytes() for row in found] == [row[0].tobytes() for row in wanted]


@pytest.mark.parametrize("make", READERS.values(), ids=READERS)
def test_a_state_resumes_at_every_row(make: Callable[..., Any], tmp_path: Path) -> None:
    read = make(tmp_path)

    @pipeline_def(batch_size=2, num_threads=2, seed=4, device_id=None)
    def reading() -> Any:
        return read(random_shuffle=True)

    def rest(state: Any) -> list[bytes]:
        with reading() as pipe:
            if state is not None:
                pipe.set_state(state)
            return [np.array(row).tobytes() for _ in range(5) for row in pipe.run()[0]]

    with reading() as pipe:
        for batch in range(3):
            state = pipe.get_state()
            assert rest(state) == (rest(None) + rest(None))[2 * batch : 2 * batch + 2] + rest(state)[2:]
            pipe.run()


# ---- zip ----


def test_labels_of_zip_archives_are_the_folders(tmp_path: Path) -> None:
    first = [("b/2.jpg", b"b2"), ("a/x.png", b"ax"), ("a/notes.txt", b"-"), ("b/", b"")]
    (tmp_path / "1.zip").write_bytes(containers.stored_zip(first))
    (tmp_path / "2.zip").write_bytes(containers.stored_zip([("a/a.JPG", b"aa"), ("c/d/1.jpeg", b"d1")]))
    paths = [str(tmp_path / f"{i}.zip") for i in (1, 2)]
    found = [(row[0].tobytes(), row[1].tolist()) for row in rows(lambda: fn.readers.zip(paths=paths))]
    assert found == [(b"aa", [0]), (b"ax", [0]), (b"b2", [1]), (b"d1", [2])]
    texts = rows(lambda: fn.readers.zip(paths=paths, extensions=[".txt"]))
    assert [(row[0].tobytes(), row[1].tolist()) for row in texts] == [(b"-", [0])]


def test_large_archives_have_numbers_of_64_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 10)
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 1)
    (tmp_path / "a.zip").write_bytes(containers.stored_zip((f"c/{i}.jpg", c) for i, c in enumerate(contents())))
    assert b"PK\6\6" in (tmp_path / "a.zip").read_bytes()
    assert [row[0].tobytes() for row in rows(lambda: fn.readers.zip(paths=str(tmp_path / "a.zip")))] == contents()


def test_zip_archives_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"

    def fault(content: bytes, message: str) -> None:
        path.write_bytes(content)
        with pytest.raises(ArgumentError, match=message):
            rows(lambda: fn.readers.zip(paths=str(path)))

    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("c/1.jpg", b"x" * 100)
    fault(packed.getvalue(), "member 'c/1.jpg' is compressed.*zip -0")
    fault(b"", "no end of a zip archive")
    fault(b"some text" * 9, "no end of a zip archive")
    fault(containers.stored_zip([("c/1.txt", b"")]), "expected files in 1 archives")
    good = containers.stored_zip([("c/1.jpg", b"abc")])
    fault(b"X" + good[1:], "the header of a member is damaged")
    for end in range(len(good)):  # truncated anywhere
        fault(good[:end], "expected a zip archive")
    twice = [str(path), str(path)]
    path.write_bytes(good)
    with pytest.raises(ArgumentError, match=r"files of different names, got .c/1\.jpg. twice"):
        rows(lambda: fn.readers.zip(paths=twice))


# ---- bagz ----


def test_bagz_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "a.bag"
    good = containers.bagz([b"abc", b"defg"])
    for content in (good[:-1], b"abc", good[:7] + struct.pack("<QQ", 9, 7), good[:7] + struct.pack("<QQ", 3, 99)):
        path.write_bytes(content)
        with pytest.raises(ArgumentError, match="expected a Bagz file"):
            rows(lambda: fn.readers.bagz(paths=str(path)))
    path.write_bytes(b"")
    with pytest.raises(ArgumentError, match="expected records"):
        rows(lambda: fn.readers.bagz(paths=str(path)))
    with pytest.raises(ArgumentError, match="not compressed"):
        rows(lambda: fn.readers.bagz(paths=str(tmp_path / "a.bagz")))


# ---- mds ----


def test_columns_of_mds(tmp_path: Path) -> None:
    samples = [
        {"x": struct.pack("<q", -i), "f": struct.pack("<f", i / 2), "t": b"t" * i,
         "m": np.full((2, 3), i, "<i2").tobytes()}
        for i in range(5)
    ]  # fmt: skip
    columns = {"x": ("int", 8), "f": ("float32", 4), "t": ("str", None), "m": ("ndarray:int16:2,3", 12)}
    containers.mds(tmp_path, samples, columns, per_shard=2)
    found = rows(lambda: fn.readers.mds(path=str(tmp_path), columns=["m", "t", "x", "f"]))
    for i, (m, t, x, f) in enumerate(found):
        assert (m.dtype, m.tolist()) == (np.int16, np.full((2, 3), i).tolist())
        assert (t.tobytes(), x.dtype, x.tolist(), f.dtype, f.tolist()) == (
            b"t" * i,
            np.int64,
            [-i],
            np.float32,
            [i / 2],
        )


def test_mds_that_cannot_be_read(tmp_path: Path) -> None:
    samples = [{"n": struct.pack("<q", i), "data": c} for i, c in enumerate(contents())]
    columns: dict[str, tuple[str, int | None]] = {"n": ("int", 8), "data": ("bytes", None)}
    containers.mds(tmp_path, samples, columns, per_shard=9)

    def read(names: Any = ("data",)) -> list[Any]:
        return rows(lambda: fn.readers.mds(path=str(tmp_path), columns=list(names)))

    shard, index = tmp_path / "shard.00000.mds", tmp_path / "index.json"
    good, facts = shard.read_bytes(), json.loads(index.read_text())
    with pytest.raises(ArgumentError, match="expected `columns` among 'n', 'data', got 'image'"):
        read(["image"])
    for content in (good[:8], b"", b"\1" + good[1:]):
        shard.write_bytes(content)
        with pytest.raises(ArgumentError, match="expected a shard of 7 samples"):
            read()
    shard.write_bytes(good[:36] + good[36:].replace(struct.pack("<I", 3000), struct.pack("<I", 3001)))
    with pytest.raises(DataError, match="expected a record of 2 fields"):
        read()
    for change, message in (
        ({"format": "json"}, "shards of the format mds"),
        ({"column_sizes": [8]}, "a list of shards"),
        ({"raw_data": {"basename": "../x"}}, "names of files"),
        ({"column_encodings": ["int", "tree"]}, "'tree'"),
        ({"compression": "zstd", "raw_data": {"basename": "none.mds"}}, "not compressed"),
    ):
        index.write_text(json.dumps({"version": 2, "shards": [{**facts["shards"][0], **change}]}))
        with pytest.raises(ArgumentError, match=message):
            read()
    index.write_text("[")
    with pytest.raises(ArgumentError, match="expected JSON"):
        read()


# ---- caffe ----


def test_images_and_labels_of_caffe(tmp_path: Path) -> None:
    records = {
        b"10": containers.datum(data=b"abc", label=3, encoded=True), b"9": containers.datum(data=b"", label=-1),
        b"2": containers.datum(data=b"x" * 9000),
    }  # fmt: skip
    (tmp_path / "data.mdb").write_bytes(containers.lmdb(records))
    found = [plain(row) for row in rows(lambda: fn.readers.caffe(path=[str(tmp_path), str(tmp_path / "data.mdb")]))]
    once = [
        [b"abc", ("int32", (1,), [3])],
        [b"x" * 9000, ("int32", (0,), [])],
        [b"", ("int32", (1,), [-1])],
    ]  # in the order of the keys as bytes
    assert found == once * 2
    labels = rows(lambda: fn.readers.caffe(path=str(tmp_path), image_available=False))
    assert [row[0].tolist() for row in labels] == [[3], [], [-1]]


def test_pixels_of_caffe_are_not_permuted(tmp_path: Path) -> None:
    pixels = np.arange(24, dtype=np.uint8)
    record = containers.datum(data=pixels.tobytes(), shape=(3, 4, 2), encoded=False, label=1)
    wrong = containers.datum(data=b"123", shape=(3, 4, 2), encoded=False, label=1)
    (tmp_path / "data.mdb").write_bytes(containers.lmdb({b"a": record, b"b": wrong, b"c": containers.datum(data=b"x")}))
    found = rows(lambda: fn.readers.caffe(path=str(tmp_path), sampler=[0])[0])
    assert found[0][0].tolist() == pixels.reshape(4, 2, 3).tolist()
    for sample, message in ((1, "channels of 3 bytes, got 4, 2 and 3"), (2, "expected pixels, as in the first record")):
        with pytest.raises(DataError, match=message):
            rows(lambda sample=sample: fn.readers.caffe(path=str(tmp_path), sampler=[sample])[0])


@pytest.mark.parametrize("page", [256, 4096, 65536])
@pytest.mark.parametrize("count", [1, 7, 400])
def test_trees_of_all_depths(tmp_path: Path, page: int, count: int) -> None:
    values = {
        f"{i:06}".encode(): containers.datum(data=bytes([i % 256]) * (i * 37 % 700), label=i) for i in range(count)
    }
    (tmp_path / "data.mdb").write_bytes(containers.lmdb(values, page=page))
    labels = rows(lambda: fn.readers.caffe(path=str(tmp_path), image_available=False), batch_size=64)
    assert [int(row[0][0]) for row in labels] == list(range(count))


def test_environments_that_cannot_be_read(tmp_path: Path) -> None:
    good = containers.lmdb({f"{i:02}".encode(): containers.datum(data=b"d" * 300, label=i) for i in range(40)})
    path = tmp_path / "data.mdb"

    def fault(content: bytes) -> str:
        path.write_bytes(content)
        with pytest.raises(ArgumentError) as raised:
            rows(lambda: fn.readers.caffe(path=str(tmp_path)))
        return str(raised.value)

    assert "no header of LMDB" in fault(b"")
    assert "no header of LMDB" in fault(b"text" * 4096)
    for end in range(4096 * 2, len(good), 1000):
        assert "damaged" in fault(good[:end])
    root = struct.unpack_from("<Q", good, 4096 + 16 + 112)[0]
    loop = bytearray(good)
    child = struct.unpack_from("<H", good, root * 4096 + 16)[0]
    struct.pack_into("<H", loop, root * 4096 + child, root)  # the root is its own child
    assert "out of range" in fault(bytes(loop))
    assert "empty" in fault(containers.lmdb({}))


# ---- sequences ----


def test_sequences_of_frames(tmp_path: Path) -> None:
    for stream, count in (("b", 5), ("a", 4), ("c", 1)):
        (tmp_path / stream).mkdir()
        for i in range(count):
            Image.new("RGB", (6, 4), (ord(stream), i, 0)).save(tmp_path / stream / f"{i:03}.png")

    def read(**arguments: Any) -> list[list[tuple[str, int]]]:
        found = rows(lambda: fn.readers.sequence(file_root=str(tmp_path), **arguments))
        assert all(row[0].shape[1:] == (4, 6, 3) for row in found)
        return [[(chr(frame[0, 0, 0]), int(frame[0, 0, 1])) for frame in row[0]] for row in found]

    assert read(sequence_length=3) == [
        [(s, i + k) for k in range(3)] for s, starts in (("a", 2), ("b", 3)) for i in range(starts)
    ]
    assert read(sequence_length=2, step=2, stride=3) == [[("a", 0), ("a", 3)], [("b", 0), ("b", 3)]]
    gray = rows(lambda: fn.readers.sequence(file_root=str(tmp_path), sequence_length=1, image_type=types.GRAY))
    assert {row[0].shape for row in gray} == {(1, 4, 6, 1)}
    with pytest.raises(ArgumentError, match="expected sequences of 9 frames"):
        read(sequence_length=9)
