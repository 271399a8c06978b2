# SPDX-License-Identifier: Apache-2.0
"""``stoker check`` of files of the formats' own libraries, and of objects in real stores: ``make test-containers``."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bagz
import datasets
import lance
import lmdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tfrecord.writer
import webdataset
from array_record.python import array_record_module
from astropy.io import fits
from litdata.streaming.writer import BinaryWriter
from litdata.types import Jpeg
from PIL import Image

import containers
from stoker import fn
from stoker.command import main
from stoker.inspection.check import CheckReport, check
from stoker.inspection.survey import Remark
from tests.containers.data import rows
from tests.containers.real_clouds import CLOUDS, Cloud
from tests.containers.real_clouds import clouds as clouds
from tests.containers.real_mds import streaming as streaming
from tests.containers.real_mds import write as write_mds
from tests.containers.real_stores import Server
from tests.containers.real_stores import clock as clock
from tests.containers.real_stores import deadline as deadline
from tests.containers.real_stores import s3 as s3
from tests.containers.real_stores import server as server

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning",
        "ignore::astropy.utils.exceptions.AstropyWarning", "ignore:.*groups of 5 records:RuntimeWarning",
    ),
    pytest.mark.leaks("the libraries' own threads and files"),
]  # fmt: skip
COUNT, CUT = 23, 9


def jpeg(i: int) -> bytes:
    file = io.BytesIO()
    pixels = np.random.default_rng(i).integers(0, 256, (40 + i, 50, 3), np.uint8)
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


IMAGES = [jpeg(i) for i in range(COUNT)]
WITH_CUT = [image[: len(image) // 2] if i == CUT else image for i, image in enumerate(IMAGES)]


# ---- writers of the libraries: a folder, and images in it ----


def by_array_record(folder: Path, images: list[bytes], group: int = 1) -> None:
    writer = array_record_module.ArrayRecordWriter(str(folder / "a.array_record-00000-of-00001"), f"group_size:{group}")
    for image in images:
        writer.write(image)
    writer.close()


def by_array_record_in_groups(folder: Path, images: list[bytes]) -> None:
    by_array_record(folder, [containers.example({"image": image, "n": [i]}) for i, image in enumerate(images)], 5)


def by_lance(folder: Path, images: list[bytes]) -> None:
    table = pa.table({"image": pa.array(images, pa.large_binary()), "label": list(range(len(images)))})
    lance.write_dataset(table, str(folder / "a.lance"), max_rows_per_file=9)


def by_litdata(folder: Path, images: list[bytes]) -> None:
    writer = BinaryWriter(str(folder), chunk_size=7)
    for i, image in enumerate(images):
        writer[i] = {"image": Jpeg(bytes=image), "n": i, "object": {i}}
    writer.done()
    writer.merge()


def by_tfrecord(folder: Path, images: list[bytes]) -> None:
    writer = tfrecord.writer.TFRecordWriter(str(folder / "a.tfrecord"))
    for i, image in enumerate(images):
        writer.write({"image": (image, "byte"), "n": ([i], "int")})
    writer.close()


def by_webdataset(folder: Path, images: list[bytes]) -> None:
    with webdataset.TarWriter(str(folder / "a.tar")) as writer:
        for i, image in enumerate(images):
            writer.write({"__key__": f"{i:03}", "jpg": image})


def by_zipfile(folder: Path, images: list[bytes]) -> None:
    with zipfile.ZipFile(folder / "a.zip", "w") as archive:
        for i, image in enumerate(images):
            archive.writestr(f"{i}.jpg", image)


def by_lmdb(folder: Path, images: list[bytes]) -> None:
    with lmdb.open(str(folder / "db"), map_size=1 << 24) as environment, environment.begin(write=True) as transaction:
        for i, image in enumerate(images):
            transaction.put(f"{i:04}".encode(), containers.datum(data=image, label=i, encoded=True))


def by_bagz(folder: Path, images: list[bytes]) -> None:
    with bagz.Writer(str(folder / "a.bag")) as writer:
        for image in images:
            writer.write(image)


def by_pyarrow(folder: Path, images: list[bytes]) -> None:
    pq.write_table(pa.table({"image": images}), folder / "a.parquet", row_group_size=5)


def by_datasets(folder: Path, images: list[bytes]) -> None:
    found = datasets.Dataset.from_dict({"image": [{"bytes": image, "path": None} for image in images]})
    found.cast_column("image", datasets.Image()).save_to_disk(str(folder / "hf"))


WRITERS: dict[str, Callable[[Path, list[bytes]], None]] = {
    "array_record": by_array_record, "array_record in groups": by_array_record_in_groups, "lance": by_lance,
    "litdata": by_litdata, "tfrecord": by_tfrecord, "webdataset": by_webdataset, "zip": by_zipfile, "lmdb": by_lmdb,
    "bagz": by_bagz, "parquet": by_pyarrow, "datasets": by_datasets,
}  # fmt: skip


def bad(report: CheckReport) -> list[tuple[int | None, Remark]]:
    return [(f.record, f.remark) for f in report.bad]


@pytest.mark.parametrize("library", WRITERS)
def test_whole_and_cut_images(library: str, tmp_path: Path) -> None:
    for name, images in (("whole", IMAGES), ("cut", WITH_CUT)):
        (tmp_path / name).mkdir()
        WRITERS[library](tmp_path / name, images)
    whole, cut = check(tmp_path / "whole"), check(tmp_path / "cut")
    assert (whole.findings, whole.containers, whole.records) == ([], 1, COUNT)
    assert bad(cut) == [(CUT, Remark.TRUNCATED)]
    assert main(["check", str(tmp_path / "whole")]) == 0
    assert main(["check", str(tmp_path / "cut")]) == 1


def test_mds(streaming: Any, tmp_path: Path) -> None:
    write_mds(streaming, tmp_path, hashes=["sha1", "xxh64"])
    report = check(tmp_path)
    assert (report.bad, report.records) == ([], 40)
    shard = sorted(tmp_path.glob("*.mds"))[1]
    shard.write_bytes(shard.read_bytes()[:-1] + b"\xff")
    report = check(tmp_path)
    assert {f.path for f in report.bad} == {shard}
    assert any("another sha1" in f.detail for f in report.bad)


def test_images_that_no_library_decodes_are_pixels(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(12).reshape(3, 4))
    np.lib.format.write_array((tmp_path / "b.npy").open("wb"), np.ones((2, 3), order="F"), version=(3, 0))
    report = check(tmp_path)
    assert (report.findings, report.containers) == ([], 2)


# ---- ArrayRecord ----


@pytest.mark.parametrize("group", [1, 5])
def test_damaged_array_records(group: int, tmp_path: Path) -> None:
    path = tmp_path / "a"
    writer = array_record_module.ArrayRecordWriter(str(path), f"group_size:{group},uncompressed")
    for i in range(40):
        writer.write(bytes([i]) * 3000)
    writer.close()
    raw = path.read_bytes()
    at = raw.index(bytes([12]) * 1000)
    path.write_bytes(raw[:at] + b"spoi" + raw[at + 4 :])
    (finding,) = check(tmp_path).bad
    assert (finding.record, finding.remark) == (12 if group == 1 else 10, Remark.RECORD)
    assert "hash mismatch" in finding.detail
    assert ("records 10 to 14: " in finding.detail) == (group == 5)
    delivered = rows(lambda: fn.readers.array_record(str(path), on_error="skip"), batch_size=40, error_limit=1.0)
    assert len(delivered) == 40 - group
    for size in (1, 100, len(raw) // 2, len(raw) - 1000):
        (tmp_path / "a").write_bytes(raw[:size])
        found = check(tmp_path)
        assert found.ignored if size == 1 else [f.remark for f in found.bad] == [Remark.CONTAINER], size
    (tmp_path / "a").rename(tmp_path / "a.array_record")
    (tmp_path / "a.array_record").write_bytes(b"\0" + raw[1:-1000])  # known by its name alone
    assert [f.remark for f in check(tmp_path).bad] == [Remark.CONTAINER]


# ---- Lance ----


def test_damaged_lance(tmp_path: Path) -> None:
    by_lance(tmp_path, IMAGES)
    source = lance.dataset(str(tmp_path / "a.lance"))
    second = list(source.get_fragments())[1].data_files()[0].path
    path = tmp_path / "a.lance" / "data" / second
    raw = path.read_bytes()
    for content in (b"", raw[: len(raw) // 2], raw[:-1], None):
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
        (finding,) = check(tmp_path).bad
        assert finding.record == 0 and f"rows 0 to {COUNT - 1}: " in finding.detail
    path.write_bytes(raw)
    assert not check(tmp_path).findings
    for version in (tmp_path / "a.lance" / "_versions").glob("*.manifest"):
        version.write_bytes(version.read_bytes()[:-1])
    (finding,) = check(tmp_path).bad
    assert (finding.path, finding.remark) == (tmp_path / "a.lance", Remark.CONTAINER)


def test_images_next_to_data_sets_are_checked(tmp_path: Path) -> None:
    by_lance(tmp_path, IMAGES)
    by_litdata(tmp_path, IMAGES)
    (tmp_path / "1.jpg").write_bytes(IMAGES[0])
    (tmp_path / "2.jpg").write_bytes(IMAGES[1][:100])
    (tmp_path / "notes.txt").write_text("notes")
    report = check(tmp_path)
    assert [f.path.name for f in report.bad if isinstance(f.path, Path)] == ["2.jpg"]
    assert (report.files, report.containers, report.records, report.ignored) == (4, 2, 2 * COUNT, 1)


# ---- LitData ----


def test_damaged_litdata(tmp_path: Path) -> None:
    by_litdata(tmp_path, IMAGES)
    chunk, raw = tmp_path / "chunk-0-1.bin", (tmp_path / "chunk-0-1.bin").read_bytes()
    for content, text in ((raw[:-1], f"as the index says, got {len(raw) - 1}"), (None, "No such file")):
        if content is None:
            chunk.unlink()
        else:
            chunk.write_bytes(content)
        (finding,) = check(tmp_path).bad
        assert finding.record == 7 and "samples 7 to 13: " in finding.detail and text in finding.detail
    at = raw.index(IMAGES[9])
    chunk.write_bytes(raw[:at] + bytes(50) + raw[at + 50 :])
    assert bad(check(tmp_path)) == [(9, Remark.NOT_IMAGE)]
    chunk.write_bytes(raw[:4] + b"\xff" * 32 + raw[36:])  # the offsets
    assert [f.record for f in check(tmp_path).bad] == list(range(7, 14))
    chunk.write_bytes(raw)
    index = (tmp_path / "index.json").read_text()
    (tmp_path / "index.json").write_text(index[:-10])
    assert bad(check(tmp_path)) == [(None, Remark.CONTAINER)]
    described = json.loads(index)
    described["config"]["compression"] = "zstd"
    (tmp_path / "index.json").write_text(json.dumps(described))
    (finding,) = check(tmp_path).bad
    assert "without compression" in finding.detail


# ---- FITS ----


def write_fits(path: Path, **settings: Any) -> bytes:
    image = np.random.default_rng(0).integers(0, 999, (60, 50)).astype("i2")
    table = fits.BinTableHDU.from_columns([fits.Column(name="a", format="J", array=np.arange(999))])
    units = [fits.PrimaryHDU(), fits.ImageHDU(image), fits.CompImageHDU(image), table]
    fits.HDUList(units).writeto(path, **settings)
    return path.read_bytes()


def test_fits_cut_at_many_places(tmp_path: Path) -> None:
    raw = write_fits(tmp_path / "a.fits")
    with fits.open(tmp_path / "a.fits") as file:
        ends = {unit.fileinfo()["datLoc"] + unit.fileinfo()["datSpan"] for unit in file}
    for size in range(1, len(raw) + 1, 331):
        (tmp_path / "a.fits").write_bytes(raw[:size])
        assert bool(check(tmp_path).bad) == (size not in ends), size
    (tmp_path / "a.fits").write_bytes(raw)
    report = check(tmp_path)
    assert (report.findings, report.records, report.containers) == ([], 4, 1)


def test_checksums_of_fits(tmp_path: Path) -> None:
    """In images, in images that are compressed by tiles, and in tables."""
    raw = write_fits(tmp_path / "a.fits", checksum=True)
    assert not check(tmp_path).findings
    with fits.open(tmp_path / "a.fits", disable_image_compression=True) as file:
        places = [unit.fileinfo()["datLoc"] for unit in file]
    for unit, place in list(enumerate(places))[1:]:
        (tmp_path / "a.fits").write_bytes(raw[: place + 100] + bytes([raw[place + 100] ^ 1]) + raw[place + 101 :])
        (finding,) = check(tmp_path).bad
        assert (finding.record, finding.name, finding.remark) == (unit, f"HDU {unit + 1}", Remark.RECORD)
        assert "DATASUM" in finding.detail


# ---- objects ----


def put_all(put: Callable[[str, bytes], object], folder: Path) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            put(f"data/{path.relative_to(folder).as_posix()}", path.read_bytes())


def mixed(folder: Path) -> dict[str, int]:
    """Write a container of each library with half an image. Return the names of the containers and their records."""
    for library, write in WRITERS.items():
        (folder / library.replace(" ", "-")).mkdir()
        write(folder / library.replace(" ", "-"), WITH_CUT)
    (folder / "one.jpg").write_bytes(IMAGES[0])
    return {library.replace(" ", "-"): CUT for library in WRITERS}


def test_s3(s3: Any, tmp_path: Path) -> None:
    wanted = mixed(tmp_path)
    put_all(lambda name, data: s3.put_object(Bucket="training", Key=name, Body=data), tmp_path)
    report, local = check("s3://training/data"), check(tmp_path)
    assert {str(f.path).split("/")[4]: f.record for f in report.bad} == wanted
    assert (report.files, report.containers, report.records, report.ignored) == (
        local.files, local.containers, local.records, local.ignored,
    )  # fmt: skip
    assert all(str(f.path).startswith("s3://training/data/") for f in report.findings)
    shutil.rmtree(tmp_path)
    (finding,) = check("s3://training/data/webdataset/a.tar").bad
    assert (finding.path, finding.record) == ("s3://training/data/webdataset/a.tar", CUT)
    assert main(["check", "s3://training/nothing"]) == 2


@pytest.mark.parametrize("scheme", CLOUDS)
def test_other_stores(scheme: str, clouds: Callable[[str], Cloud], server: Server, tmp_path: Path) -> None:
    (tmp_path / "tar").mkdir()
    by_webdataset(tmp_path / "tar", WITH_CUT)
    bucket = clouds(scheme).bucket
    put_all(lambda name, data: server.put(f"{bucket}/{name}", data), tmp_path / "tar")
    (finding,) = check(f"{scheme}://training/data").bad
    assert (finding.path, finding.record) == (f"{scheme}://training/data/a.tar", CUT)


def test_http(server: Server, tmp_path: Path) -> None:
    by_zipfile(tmp_path, WITH_CUT)
    address = server.put("deep/a%20b.zip", (tmp_path / "a.zip").read_bytes())
    (finding,) = check(address).bad
    assert (finding.path, finding.record, finding.name) == (address, CUT, f"{CUT}.jpg")
    assert main(["check", server.put("x", b"")[:-1] + "none.tar"]) == 2


@pytest.mark.usefixtures("clock")
def test_an_object_that_the_server_ends_early(server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The object is a finding after the deadline, and no copy stays."""
    monkeypatch.setenv("STOKER_REMOTE_DEADLINE_S", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    by_zipfile(tmp_path, IMAGES)
    address = server.put("a.zip", (tmp_path / "a.zip").read_bytes())

    def fails(handler: Any, path: str, count: int) -> bool:
        if handler.command != "GET":
            return False
        handler.send_error(503)
        return True

    server.fault = fails
    (finding,) = check(address).bad
    assert (finding.path, finding.remark) == (address, Remark.UNREADABLE) and "status 503" in finding.detail
