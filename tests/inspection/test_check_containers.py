# SPDX-License-Identifier: Apache-2.0
"""``stoker check`` of containers: every damaged record is reported, with its file, its number and the reason."""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from containers import (
    bagz,
    datum,
    example,
    image_record,
    lmdb,
    mds,
    recordio,
    stored_zip,
    tar,
    tensor,
    tensors,
    tfrecord,
)
from stoker import fn
from stoker import tfrecord as records
from stoker.command import main
from stoker.inspection.check import CheckReport, check
from stoker.inspection.container_format import recognize
from stoker.inspection.survey import Remark
from tests.containers.data import rows

COUNT = 7
CUT = 4  # number of the record with half an image


def jpeg(number: int, form: str = "JPEG") -> bytes:
    pixels = np.random.default_rng(number).integers(0, 256, (40, 50 + number, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, form)
    return out.getvalue()


IMAGES = [jpeg(i) for i in range(COUNT)]
WITH_CUT = [image[: len(image) // 2] if i == CUT else image for i, image in enumerate(IMAGES)]


def keyed(values: list[bytes]) -> bytes:
    return lmdb({f"{i:04}".encode(): value for i, value in enumerate(values)})


def write_mds(folder: Path, images: list[bytes]) -> Path:
    samples = [{"image": image, "label": bytes(8)} for image in images]
    mds(folder, samples, {"image": ("jpeg", None), "label": ("int", 8)}, per_shard=COUNT)
    return folder / "shard.00000.mds"


def write_parquet(folder: Path, images: list[bytes]) -> Path:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    table = pa.table({"image": [{"bytes": image, "path": None} for image in images], "label": list(range(len(images)))})
    path = folder / "a.parquet"
    pq.write_table(table, path, row_group_size=2, compression="none", write_page_checksum=True)
    return path


def write_arrow(folder: Path, images: list[bytes]) -> Path:
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = folder / "a.arrow"
    with pa.OSFile(str(path), "wb") as out, pa.ipc.new_stream(out, pa.schema({"image": pa.binary()})) as stream:
        for image in images:
            stream.write_batch(pa.record_batch({"image": [image]}))
    return path


def writer(name: str, content: Callable[[list[bytes]], bytes]) -> Callable[[Path, list[bytes]], Path]:
    def write(folder: Path, images: list[bytes]) -> Path:
        (folder / name).write_bytes(content(images))
        return folder / name

    return write


WRITERS: dict[str, Callable[[Path, list[bytes]], Path]] = {
    "TFRecord": writer("a.tfrecord", lambda images: tfrecord([example({"x": i, "n": [3]}) for i in images])),
    "RecordIO": writer("a.rec", lambda images: recordio([image_record([1.0, 2.0], i) for i in images])[0]),
    "tar": writer("a.tar", lambda images: tar([(f"{n}.jpg", i) for n, i in enumerate(images)])),
    "zip": writer("a.zip", lambda images: stored_zip([(f"{n}.jpg", i) for n, i in enumerate(images)])),
    "Caffe": writer("data.mdb", lambda images: keyed([datum(data=i, label=1, encoded=True) for i in images])),
    "Caffe2": writer("data.mdb", lambda images: keyed([tensors(tensor(i, 4), tensor([1], 2)) for i in images])),
    "Bagz": writer("a.bag", bagz),
    "MDS": write_mds,
    "Parquet": write_parquet,
    "Arrow": write_arrow,
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def arrow_threads(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Start the threads that pyarrow keeps for the process before a test counts them: one of each kind."""
    if importlib.util.find_spec("pyarrow") is None:
        return
    pa = importlib.import_module("pyarrow")
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    check(write_parquet(tmp_path_factory.mktemp("arrow"), IMAGES[:1]))


@pytest.fixture(params=WRITERS)
def write(request: pytest.FixtureRequest) -> Callable[[Path, list[bytes]], Path]:
    return WRITERS[request.param]


def bad(report: CheckReport) -> list[tuple[int | None, Remark]]:
    return [(f.record, f.remark) for f in report.bad]


def test_whole_containers_have_nothing_to_remark(write: Any, tmp_path: Path) -> None:
    path = write(tmp_path, IMAGES)
    for root in (tmp_path, path):
        report = check(root)
        assert (report.findings, report.containers, report.records) == ([], 1, COUNT)


def test_an_image_that_ends_early_is_found_in_its_record(write: Any, tmp_path: Path) -> None:
    path = write(tmp_path, WITH_CUT)
    report = check(tmp_path)
    assert bad(report) == [(CUT, Remark.TRUNCATED)]
    (finding,) = report.findings
    assert finding.path == path and finding.offset == len(WITH_CUT[CUT])
    assert f"{path}, record {CUT}" in str(report)


def test_a_record_without_its_image_is_found(write: Any, tmp_path: Path) -> None:
    """Bytes that are no image are a fault if the first record has an image there."""
    images = [b"no image at all" if i == CUT else image for i, image in enumerate(IMAGES)]
    report = check(write(tmp_path, images))
    assert bad(report) == [(CUT, Remark.NOT_IMAGE)]


def test_a_file_that_ends_early_is_found(write: Any, tmp_path: Path) -> None:
    """At any byte: where the cut is not between two records, there is a finding, and records before it are checked."""
    path = write(tmp_path, IMAGES)
    whole = path.read_bytes()
    for size in sorted({*np.linspace(1, len(whole) - 1, 60).astype(int).tolist(), len(whole) - 1}):
        path.write_bytes(whole[:size])
        report = check(path)
        if size in between(path, whole):
            continue
        found = report.findings if path.suffix == ".tar" else report.bad
        assert found or size > len(whole.rstrip(b"\0")), size
        assert all(f.path == path and f.detail for f in found)
        assert report.records <= COUNT


def between(path: Path, whole: bytes) -> set[int]:
    """Return the sizes at which a file ends with a record, so that the rest is a file of its own."""
    if path.suffix == ".tfrecord":
        return {len(tfrecord([example({"x": image, "n": [3]}) for image in IMAGES[:k]])) for k in range(COUNT)}
    if path.suffix == ".rec":  # the zeros after a record may be missing
        ends = [len(recordio([image_record([1.0, 2.0], image) for image in IMAGES[:k]])[0]) for k in range(COUNT + 1)]
        return {end - n for end in ends for n in range(4) if not any(whole[end - n : end])}
    return set()


def test_a_tar_file_that_was_cut_between_members_is_a_remark(tmp_path: Path) -> None:
    whole = tar([("1.cls", b"3"), ("2.cls", b"4")])
    path = tmp_path / "a.tar"
    path.write_bytes(whole[:1024])
    (finding,) = check(path).findings
    assert (finding.remark, finding.offset) == (Remark.DAMAGED, 1024) and "no end marker" in finding.detail


CHECKSUMS = {"TFRecord", "zip", "Parquet"}


@pytest.mark.parametrize("kind", sorted(CHECKSUMS))
def test_a_changed_byte_is_found_by_its_checksum(kind: str, tmp_path: Path) -> None:
    path = WRITERS[kind](tmp_path, IMAGES)
    whole = path.read_bytes()
    begin = whole.index(IMAGES[CUT][-150:-50])
    path.write_bytes(whole[:begin] + bytes([whole[begin] ^ 1]) + whole[begin + 1 :])
    (finding,) = check(path).bad
    assert finding.record == CUT and finding.remark is Remark.RECORD
    assert "checksum" in finding.detail or "CRC" in finding.detail or "crc" in finding.detail, finding.detail
    if kind == "Parquet":
        assert f"rows {CUT} to {CUT + 1}: " in finding.detail


def test_several_damaged_records_are_all_found(tmp_path: Path) -> None:
    path = WRITERS["TFRecord"](tmp_path, IMAGES)
    whole = bytearray(path.read_bytes())
    for number in (0, 3, 6):
        whole[bytes(whole).index(IMAGES[number][-150:-50])] ^= 64
    path.write_bytes(whole)
    assert bad(check(path)) == [(0, Remark.RECORD), (3, Remark.RECORD), (6, Remark.RECORD)]


def test_a_damaged_length_hides_the_records_after_it(tmp_path: Path) -> None:
    whole = tfrecord([example({"x": image}) for image in IMAGES])
    third = len(tfrecord([example({"x": image}) for image in IMAGES[:3]]))
    path = tmp_path / "a.tfrecord"
    path.write_bytes(whole[:third] + b"\xff" + whole[third + 1 :])
    report = check(path)
    (finding,) = report.bad
    assert (finding.record, finding.offset, report.records) == (3, third, 3)
    assert f"the {len(whole) - third} bytes from byte {third} on hold no record" in finding.detail


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (recordio([image_record([1.0], b"abc"), b"too short"])[0], "expected labels and an image in a record"),
        (keyed([datum(data=b"x" * 12, label=1, shape=(1, 3, 4), encoded=False), datum(data=b"x" * 11, label=1,
                shape=(1, 3, 4), encoded=False)]), "expected pixels of the shape (3, 4, 1), got 11 bytes"),
        (keyed([tensors(tensor([1, 2], 2)), tensors(tensor([1, 2], 2, (3,)))]), "expected values for the extents [3]"),
        (tfrecord([example({"n": [1]}), b"\xff\xff"]), "expected a tf.train.Example"),
    ],
)  # fmt: skip
def test_a_record_of_another_form_is_found(content: bytes, expected: str, tmp_path: Path) -> None:
    path = tmp_path / (
        "a.rec" if content[:1] == b"\n" else "a.tfrecord" if b"Examp" in expected.encode() else "data.mdb"
    )
    path.write_bytes(content)
    (finding,) = check(path).bad
    assert (finding.record, finding.remark) == (1, Remark.RECORD) and expected in finding.detail


def test_records_without_images_and_of_unknown_form_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(tfrecord([b"free text \xff", b"", b"more"]))
    (tmp_path / "b.tfrecord-00000-of-00001").write_bytes(tfrecord([example({"n": [1, 2]})] * 3))
    (tmp_path / "c.tar").write_bytes(tar([("1.cls", b"3"), ("2.txt", b"")]))
    (tmp_path / "data.mdb").write_bytes(keyed([b"raw", b"values"]))
    report = check(tmp_path)
    assert (report.findings, report.containers, report.records) == ([], 4, 10)


def test_arrays(tmp_path: Path) -> None:
    out = io.BytesIO()
    np.save(out, np.arange(12, dtype=">f4").reshape(3, 4))
    whole = out.getvalue()
    (tmp_path / "a.npy").write_bytes(whole)
    (tmp_path / "a.tar").write_bytes(tar([("1.npy", whole), ("2.npy", whole[:-1])]))
    (finding,) = check(tmp_path).bad
    assert (finding.path.name, finding.record, finding.name) == ("a.tar", 1, "2.npy")
    for size in range(1, len(whole)):
        (tmp_path / "a.npy").write_bytes(whole[:size])
        (finding,) = check(tmp_path / "a.npy").bad
        assert finding.record == 0 and finding.detail


def test_mds_shards_are_compared_with_their_index(tmp_path: Path) -> None:
    path = write_mds(tmp_path, IMAGES)
    listed = json.loads((tmp_path / "index.json").read_text())
    raw = listed["shards"][0]["raw_data"]
    raw["hashes"] = {"sha1": hashlib.sha1(path.read_bytes()).hexdigest(), "unknown": "00"}
    (tmp_path / "index.json").write_text(json.dumps(listed))
    assert not check(tmp_path).findings
    raw["hashes"]["sha1"] = "0" * 40
    raw["bytes"] += 1
    (tmp_path / "index.json").write_text(json.dumps(listed))
    first, second = check(tmp_path).bad
    assert "bytes, as index.json says" in first.detail and "another sha1 than index.json says" in second.detail
    raw["basename"] = "other.mds"
    (tmp_path / "index.json").write_text(json.dumps(listed))
    (finding,) = check(tmp_path).bad
    assert "expected 'shard.00000.mds' among the shards" in finding.detail
    (tmp_path / "index.json").unlink()
    (finding,) = check(tmp_path).bad
    assert "expected a data set with an index.json" in finding.detail


def test_compressed_and_empty_containers(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(gzip.compress(tfrecord([b"abc"])))
    (tmp_path / "b.tar").write_bytes(b"")
    (tmp_path / "c.bagz").write_bytes(bagz([b"abc"]))
    with zipfile.ZipFile(tmp_path / "d.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("1.jpg", IMAGES[0])
    found = {f.path.name: f for f in check(tmp_path).bad}
    assert "compressed with gzip" in found["a.tfrecord"].detail
    assert found["b.tar"].remark is Remark.EMPTY
    assert "compressed" in found["c.bagz"].detail and "is compressed" in found["d.zip"].detail


def test_files_that_only_look_like_containers_are_left_alone(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.arange(3))
    (tmp_path / "ros.bag").write_bytes(b"#ROSBAG V2.0\n" + bytes(600))
    (tmp_path / "lock.mdb").write_bytes(bytes(8192))
    (tmp_path / "notes.txt").write_bytes(b"some text that is long enough for a header")
    (tmp_path / "a.tfrecord.idx").write_bytes(b"0 10\n")
    report = check(tmp_path)
    assert (report.files, report.ignored, report.findings) == (0, 5, [])
    assert [recognize(str(p)) for p in sorted(tmp_path.iterdir())] == [None] * 5


RIEGELI = bytes.fromhex("83af70d10d884a3f0000000000000000") + bytes(200)
LITDATA = '{"chunks": [{"filename": "chunk-0-0.bin", "chunk_size": 1, "chunk_bytes": 9}], "config": {}}'
LIBRARIES: dict[str, tuple[str, dict[str, bytes]]] = {
    "astropy": ("fits", {"a.dat": b"SIMPLE  =                    T".ljust(2880)}),
    "array_record": ("array_record", {"a.dat": RIEGELI}),
    "lance": ("lance", {"x/_versions/1.manifest": b"1", "x/data/1.lance": b"2", "x/_deletions/3.arrow": b"3"}),
    "litdata": ("litdata", {"index.json": LITDATA.encode(), "chunk-0-0.bin": b"123456789"}),
}


@pytest.mark.parametrize("module", LIBRARIES)
def test_a_package_that_is_missing_is_a_finding(
    module: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The files are known by their content. They are one container, no damaged one, and the command says so."""
    if importlib.util.find_spec(module) is not None:
        pytest.skip(f"{module} is installed")
    extra, files = LIBRARIES[module]
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    report = check(tmp_path)
    (finding,) = report.bad
    assert finding.remark is Remark.UNCHECKED and f"It is the extra `{extra}`: `pip install" in finding.detail
    assert (report.files, report.ignored) == (1, 0)
    assert main(["check", str(tmp_path)]) == 1
    assert f": not checked (expected the package `{module}`" in capsys.readouterr().out


def test_shards_with_numbers_are_known_by_their_names(tmp_path: Path) -> None:
    """Names such as those of TensorFlow Datasets, if the first bytes are damaged."""
    names = {"a.tfrecord-00001-of-00002": "tfrecord", "a.array_record-00001-of-00002": "array_record"}
    for name, kind in names.items():
        (tmp_path / name).write_bytes(b"damaged, and long enough for a header")
        assert recognize(str(tmp_path / name)) == kind


def test_the_check_agrees_with_pipelines(tmp_path: Path) -> None:
    """With ``on_error="skip"`` a pipeline delivers the records that the check does not report."""
    spoilt = [*WITH_CUT, b"", jpeg(9)[:60]]
    cases = {
        "TFRecord": lambda p: fn.readers.tfrecord(path=p, features={"x": records.FixedLenFeature((), "string")})["x"],
        "RecordIO": lambda p: fn.readers.mxnet(path=p)[0],
        "tar": lambda p: fn.readers.webdataset(paths=p, ext="jpg"),
        "zip": lambda p: fn.readers.zip(paths=p)[0],
        "Bagz": lambda p: fn.readers.bagz(paths=p),
        "Caffe": lambda p: fn.readers.caffe(path=p)[0],
        "Caffe2": lambda p: fn.readers.caffe2(path=p)[0],
    }
    for kind, read in cases.items():
        folder = tmp_path / kind
        folder.mkdir()
        path = WRITERS[kind](folder, spoilt)
        reported = {f.record for f in check(path).bad}
        assert reported == {CUT, COUNT, COUNT + 1}, kind
        delivered = rows(lambda: fn.decoders.image(read(str(path))), on_error="skip")  # noqa: B023
        assert len(delivered) == len(spoilt) - len(reported), kind


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = WRITERS["tar"](tmp_path, WITH_CUT)
    (tmp_path / "a.jpg").write_bytes(IMAGES[0])
    assert main(["check", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert f"{path}, record {CUT} ({CUT}.jpg): truncated (the data end before" in printed
    assert f"2 files, {COUNT} records in 1 containers in " in printed
    assert main(["check", str(path), "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert (data["files"], data["containers"], data["records"], data["bad"]) == (1, 1, COUNT, 1)
    assert data["findings"][0]["record"] == CUT and data["findings"][0]["name"] == f"{CUT}.jpg"
    WRITERS["tar"](tmp_path, IMAGES)
    assert main(["check", str(tmp_path)]) == 0
