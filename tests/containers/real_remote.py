# SPDX-License-Identifier: Apache-2.0
"""Every reader over objects of a store: the rows of local files. Folders, lists, copies: ``make test-containers``."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import containers
from stoker import ArgumentError, DataError, fn
from stoker import tfrecord as features
from stoker.ops.audio._wav import write_wav
from stoker.remote import block_cache, client, copies
from tests.clips import write_video
from tests.containers.data import epoch, pipeline, plain, rows
from tests.containers.real_stores import Server
from tests.containers.real_stores import cache as cache
from tests.containers.real_stores import clock as clock
from tests.containers.real_stores import deadline as deadline
from tests.containers.real_stores import s3 as s3
from tests.containers.real_stores import server as server

COUNT = 12
pytestmark = pytest.mark.leaks("obstore's threads live as long as the process, and copies stay open")
Case = tuple[Callable[[Path], None], Callable[..., Any]]


def content(i: int) -> bytes:
    return np.random.default_rng(i).bytes(i * 97 % 700)


def picture(path: Path, i: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(i).integers(0, 256, (8, 9, 3), np.uint8)
    Image.fromarray(pixels).save(path)


def write_images(folder: Path) -> None:
    for i in range(COUNT):
        picture(folder / "ab"[i % 2] / f"{i:02} #{i}%.png", i)
    (folder / "a" / "notes.txt").write_text("no image")
    (folder / "list.txt").write_text("".join(f"{'ab'[i % 2]}/{i:02} #{i}%.png {i * 3}\n" for i in range(COUNT)))


def write_arrays(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for i in range(COUNT):
        array = np.random.default_rng(i).random((5, 3 + i)).astype(">f4")
        np.save(folder / f"{i:02}.npy", np.asfortranarray(array) if i % 2 else array)


def write_lmdb(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    records = {f"{i:03}".encode(): containers.datum(data=content(i), label=i) for i in range(COUNT)}
    (folder / "data.mdb").write_bytes(containers.lmdb(records))


def write_tensors(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    records = {
        f"{i:03}".encode(): containers.tensors(containers.tensor(content(i + 1), 4), containers.tensor([i], 2))
        for i in range(COUNT)
    }
    (folder / "data.mdb").write_bytes(containers.lmdb(records))


def write_fits(folder: Path) -> None:
    from astropy.io import fits

    folder.mkdir(parents=True, exist_ok=True)
    for i in range(COUNT):
        image = np.arange((2 + i % 3) * 5, dtype="i2").reshape(-1, 5) + i
        fits.HDUList([fits.PrimaryHDU(), fits.CompImageHDU(image)]).writeto(folder / f"{i:02}.fits")


def write_videos(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in "ab":
        write_video(folder / f"{name}.mp4", "mpeg4", frames=30)


def write_coco(folder: Path) -> None:
    images, boxes = [], []
    for i in range(COUNT):
        picture(folder / f"{i:03}.png", i)
        images.append({"id": i, "file_name": f"{i:03}.png", "height": 8, "width": 9})
        boxes.append({"id": i, "image_id": i, "category_id": 1 + i % 2, "iscrowd": 0, "bbox": [1, 1, 2 + i, 3]})
    labels = {"images": images, "annotations": boxes, "categories": [{"id": 1}, {"id": 2}]}
    (folder / "labels.json").write_text(json.dumps(labels))


def write_sequences(folder: Path) -> None:
    for i in range(COUNT):
        picture(folder / "xy"[i % 2] / f"{i:02}.png", i)


def write_speech(folder: Path) -> None:
    (folder / "v").mkdir(parents=True)
    lines = []
    for i in range(COUNT):
        sound = np.random.default_rng(i).uniform(-0.5, 0.5, 800 + 40 * i).astype(np.float32)
        (folder / "v" / f"{i}.wav").write_bytes(bytes(write_wav(sound[:, None], 8000)))
        lines.append({"audio_filepath": f"v/{i}.wav", "offset": 0.01 * (i % 3), "duration": 0.05, "text": f"t{i}"})
    (folder / "all.json").write_text("\n".join(map(json.dumps, lines)))


def write_parquet(folder: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True, exist_ok=True)
    table = pa.table({"data": [content(i) for i in range(COUNT)], "n": list(range(COUNT))})
    parquet.write_table(table, folder / "rows.parquet", row_group_size=5)


def write_saved(folder: Path) -> None:
    import datasets

    rows = {"data": [content(i) for i in range(COUNT)], "n": list(range(COUNT))}
    kinds = datasets.Features({"data": datasets.Value("binary"), "n": datasets.Value("int64")})
    datasets.Dataset.from_dict(rows, features=kinds).save_to_disk(str(folder))


def write_mds(folder: Path) -> None:
    samples = [{"data": content(i), "n": np.int64(i).tobytes()} for i in range(COUNT)]
    containers.mds(folder, samples, {"data": ("bytes", None), "n": ("int", 8)}, per_shard=5)


def write_records(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data, _ = containers.recordio([containers.image_record(float(i), content(i)) for i in range(COUNT)])
    (folder / "a.rec").write_bytes(data)
    _, begins = containers.recordio([containers.image_record(float(i), content(i)) for i in range(COUNT)])
    (folder / "a.idx").write_text("".join(f"{i}\t{begin}\n" for i, begin in enumerate(begins)))
    records = [containers.example({"n": [i]}) for i in range(COUNT)]
    (folder / "a.tfrecord").write_bytes(containers.tfrecord(records))
    sizes = [len(record) + 16 for record in records]
    ends = np.cumsum(sizes)
    (folder / "a.tfindex").write_text("".join(f"{e - n} {n}\n" for e, n in zip(ends, sizes, strict=True)))


REGION: dict[str, Any] = {"roi_start": [-1, 1], "roi_shape": [4, 5], "out_of_bounds_policy": "pad", "fill_value": 7}
NUMBERS = {"n": features.FixedLenFeature((), features.int64)}
CASES: dict[str, Case] = {
    "file": (write_images, lambda r, **o: fn.readers.file(file_root=r, **o)),
    "file_list": (write_images, lambda r, **o: fn.readers.file(file_list=f"{r}/list.txt", **o)),
    "numpy": (write_arrays, lambda r, **o: fn.readers.numpy(file_root=r, **o)),
    "numpy_region": (write_arrays, lambda r, **o: fn.readers.numpy(file_root=r, **REGION, **o)),
    "caffe": (write_lmdb, lambda r, **o: fn.readers.caffe(path=r, **o)),
    "caffe2": (write_tensors, lambda r, **o: fn.readers.caffe2(path=r, **o)),
    "fits": (write_fits, lambda r, **o: fn.experimental.readers.fits(file_root=r, hdu_indices=[2], **o)),
    "video": (write_videos, lambda r, **o: fn.readers.video(
        filenames=[f"{r}/a.mp4", f"{r}/b.mp4"], sequence_length=5, **o)),
    "coco": (write_coco, lambda r, **o: fn.readers.coco(file_root=r, annotations_file=f"{r}/labels.json", **o)),
    "sequence": (write_sequences, lambda r, **o: fn.readers.sequence(file_root=r, sequence_length=2, stride=2, **o)),
    "nemo_asr": (write_speech, lambda r, **o: fn.readers.nemo_asr(f"{r}/all.json", **o)),
    "audio": (write_speech, lambda r, **o: fn.readers.audio(file_root=r, **o)),
    "parquet": (write_parquet, lambda r, **o: fn.readers.parquet(f"{r}/rows.parquet", ["data", "n"], **o)),
    "huggingface": (write_saved, lambda r, **o: fn.readers.huggingface(r, ["data", "n"], **o)),
    "mds": (write_mds, lambda r, **o: fn.readers.mds(r, ["data", "n"], **o)),
    "mxnet_index": (write_records, lambda r, **o: fn.readers.mxnet(path=f"{r}/a.rec", index_path=f"{r}/a.idx", **o)),
    "tfrecord_index": (write_records, lambda r, **o: fn.readers.tfrecord(
        path=f"{r}/a.tfrecord", index_path=f"{r}/a.tfindex", features=NUMBERS, **o)),
}  # fmt: skip


def upload(s3: Any, folder: Path, prefix: str) -> str:
    for path in folder.rglob("*"):
        if path.is_file():
            s3.put_object(Bucket="training", Key=f"{prefix}/{path.relative_to(folder)}", Body=path.read_bytes())
    return f"s3://training/{prefix}"


@pytest.mark.filterwarnings("ignore:.*left out")
@pytest.mark.parametrize("case", CASES)
def test_rows_of_objects_are_those_of_files(case: str, s3: Any, tmp_path: Path) -> None:
    write, read = CASES[case]
    write(tmp_path / "data")
    root = upload(s3, tmp_path / "data", f"some folder/{case}" if case in ("file", "numpy") else case)
    for order in ({}, {"random_shuffle": True, "num_shards": 2, "shard_id": 1, "seed": 4}):
        found, wanted = (
            list(map(plain, rows(lambda root=r, order=order: read(root, **order), batch_size=5)))
            for r in (root.replace(" ", "%20"), str(tmp_path / "data"))
        )
        assert found == wanted and len(found) >= 3


def test_rows_of_a_server_without_lists(server: Server, tmp_path: Path) -> None:
    write_arrays(tmp_path)
    write_coco(tmp_path / "coco")
    for path in tmp_path.rglob("*.*"):
        server.put(str(path.relative_to(tmp_path)), path.read_bytes())
    root = server.put("none", b"").removesuffix("/none")
    names = [f"{i:02}.npy" for i in range(COUNT)]
    found = rows(lambda: fn.readers.numpy(files=names, file_root=root))
    assert [r[0].tolist() for r in found] == [np.load(tmp_path / name).tolist() for name in names]
    with pipeline(lambda: CASES["coco"][1](f"{root}/coco"), batch_size=5) as pipe:
        assert [r[0].tobytes() for r in epoch(pipe)] == [
            (tmp_path / f"coco/{i:03}.png").read_bytes() for i in range(COUNT)
        ]
    with pytest.raises(ArgumentError, match="an HTTP server has no list of its objects"):
        rows(lambda: fn.readers.file(file_root=root))


def test_a_row_asks_for_its_object(server: Server) -> None:
    urls = [server.put(f"{i}", content(i)) for i in range(4)]
    table = np.zeros((5, 64), np.uint8)
    for i, url in enumerate([*urls, server.put("x", b"").replace("/x", "/none")]):
        table[i, : len(url)] = np.frombuffer(url.encode(), np.uint8)

    def define(count: int) -> Any:
        return fn.io.file.read(fn.external_source(lambda: list(table[:count]), batch=True))

    with pipeline(lambda: define(4), batch_size=4) as pipe:
        (batch,) = pipe.execution.batches(pipe.next())
        assert [np.array(x).tobytes() for x in batch] == [content(i) for i in range(4)]
    with pipeline(lambda: define(5), batch_size=5) as pipe, pytest.raises(DataError, match="no such object"):
        pipe.next()


def test_empty_and_refused_folders(s3: Any) -> None:
    with pytest.raises(ArgumentError, match="expected objects below the address `file_root`, got none"):
        rows(lambda: fn.readers.file(file_root="s3://training/nothing"))
    with pytest.raises(ArgumentError, match="s3://missing") as error:
        rows(lambda: fn.readers.numpy(file_root="s3://missing/x"))
    assert "very-secret" not in str(error.value)
    with pytest.raises(ArgumentError, match="without user, password"):
        rows(lambda: fn.readers.file(file_root="s3://me:very-secret@training/x"))


def test_copies_are_bounded_shared_and_kept_while_in_use(
    server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STOKER_REMOTE_CACHE_MIB", "128")
    url = server.put("one.bin", content(5))
    paths = copies.local_copies("files", [url, url, "/some/file"])
    assert paths[0] == paths[1] and Path(paths[0]).read_bytes() == content(5) and paths[2] == "/some/file"
    assert server.requests["/one.bin"] == 1
    assert copies.local_copy("files", url) == paths[0] and server.requests["/one.bin"] == 1
    block_cache.BlockCache(cache, 0).bound(1)  # evicts everything
    assert Path(paths[0]).exists()
    path, _, descriptor = copies._OPEN.pop(next(k for k, v in copies._OPEN.items() if v[0] == paths[0]))
    os.close(descriptor)
    block_cache.BlockCache(cache, 0).bound(1)
    assert not Path(path).exists()
    monkeypatch.setattr(copies, "_OPEN", {"x": ("y", 128 << 20, -1)})
    with pytest.raises(ArgumentError, match="at most 128 MiB that are copied"):
        copies.local_copy("files", server.put("two.bin", content(6)))


# ---- look-ahead ----


def test_blocks_are_loaded_ahead_within_a_bound(
    server: Server, cache: Path, clock: Callable[[], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_cache, "BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr("stoker.remote.store.BLOCK_BYTES", 1 << 12)
    records = [np.random.default_rng(i).bytes(4000) for i in range(400)]
    url = server.put("a.bag", containers.bagz(records))
    assert len(rows(lambda: fn.readers.bagz(paths=url))) == 400  # the index is kept from here on
    for mib, least, most in ((1, 256, 340), (0, 0, 40)):
        for path in cache.glob("*/*"):
            path.unlink()
        server.requests.clear()
        monkeypatch.setenv("STOKER_REMOTE_AHEAD_MIB", str(mib))
        with pipeline(lambda: fn.readers.bagz(paths=url), batch_size=4, prefetch_queue_depth=1) as pipe:
            pipe.next()
            deadline = clock() + 60
            while server.requests["/a.bag"] < least and clock() < deadline:
                time.sleep(0.02)
            time.sleep(0.1)
            assert least <= server.requests["/a.bag"] <= most
            rest = epoch(pipe)
        assert [r[0].tobytes() for r in rest] == records[4:]


def test_expected_blocks_are_evicted_last(cache: Path) -> None:
    kept = block_cache.BlockCache(cache, 16_000)
    one = block_cache.RemoteObject("http://x/y", 40_000_000, None, "0" * 32)
    for block in range(4):
        kept.write(one, block, bytes([block]) * 1000)
        os.utime(cache / one.identity / str(block), (block + 1, block + 1))
    assert not kept.expect(one, 0) and kept.expect(one, 9) and not kept.expect(one, 9)
    block_cache.BlockCache.bound(kept, 16_000)
    kept._limit_bytes = 2200
    kept.bound(16_000)
    assert sorted(int(p.name) for p in (cache / one.identity).glob("?")) == [0, 3]


# ---- servers that lie or do not answer ----


def test_a_server_that_never_answers(
    server: Server, clock: Callable[[], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "REQUEST_S", 1)
    monkeypatch.setenv("STOKER_REMOTE_DEADLINE_S", "3")
    monkeypatch.setenv("STOKER_REMOTE_CACHE", "off")
    urls = [server.put(f"{i}.bin", content(i + 1)) for i in range(3)]
    server.fault = lambda h, path, count: path == "/1.bin" and (time.sleep(4), True)[1]
    began = clock()
    with pytest.raises(DataError, match=r"1\.bin' at byte 0: no answer within 1 s \(\d+ attempts .*in \d+\.\d s"):
        rows(lambda: fn.readers.file(files=urls))
    assert 3 <= clock() - began < 60
    assert [int(r[1][0]) for r in rows(lambda: fn.readers.file(files=urls, on_error="skip"))] == [0, 2]


LIES: dict[str, tuple[str, bool]] = {  # header, whether the body is the whole object
    "another total": ("bytes {begin}-{end}/999999", False),
    "unknown total": ("bytes {begin}-{end}/*", False),
    "no numbers": ("bytes all of it", False),
    "an end beyond the object": ("bytes {begin}-{beyond}/{size}", False),
    "a begin after the end": ("bytes {end}-{begin}/{size}", False),
    "the whole object": ("bytes {begin}-{end}/{size}", True),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
def test_a_lying_content_range_gives_no_other_bytes(lie: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STOKER_REMOTE_CACHE", "off")
    wanted = [content(i + 1) for i in range(COUNT)]
    urls = [server.put(f"{i}.bin", each) for i, each in enumerate(wanted)]
    form, is_whole = LIES[lie]
    requests = [0]

    def answer(handler: Any, path: str, count: int) -> bool:
        data = server.objects[path]
        given = handler.headers.get("Range")
        if given is None or requests[0] > 2:
            return False
        requests[0] += 1
        begin, end = (int(x) for x in given.removeprefix("bytes=").split("-"))
        end = min(end, len(data) - 1)
        body = data if is_whole else data[begin : end + 1]
        handler.send_response(206)
        facts = {"begin": begin, "end": end, "size": len(data), "beyond": len(data) + 5}
        handler.send_header("Content-Range", form.format(**facts))
        handler.send_header("Content-Length", str(len(body)))
        handler.send_header("ETag", server.tags[path])
        handler.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        handler.end_headers()
        handler.wfile.write(body)
        return True

    server.fault = answer
    found = rows(lambda: fn.readers.file(files=urls, on_error="skip"))
    assert requests[0], "the server lied"
    assert all(r[0].tobytes() == wanted[int(r[1][0])] for r in found)
    assert len(found) >= COUNT - 3
