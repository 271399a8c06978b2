# SPDX-License-Identifier: Apache-2.0
"""ArrayRecord, Lance, LitData and FITS, written by the real libraries: ``make test-containers``."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from array_record.python import array_record_module
from astropy.io import fits
from litdata.streaming.writer import BinaryWriter
from litdata.types import Jpeg
from PIL import Image

import examples
from stoker import ArgumentError, DataError, StateError, fn, samplers, types
from stoker.readers import array_record
from tests.containers.data import epoch, pipeline, plain, rows

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning",
        "ignore::astropy.utils.exceptions.AstropyWarning", "ignore:.*groups of 7 records:RuntimeWarning",
    ),
    pytest.mark.leaks("the libraries' own threads and files"),
]  # fmt: skip
COUNT = 40


def content(i: int) -> bytes:
    return np.random.default_rng(i).bytes(i * 211 % 3000)


# ---- the four data sets, and their rows as the libraries read them ----


def write_array_record(path: Path, first: int, last: int, group: int = 1) -> str:
    writer = array_record_module.ArrayRecordWriter(str(path), f"group_size:{group}")
    for i in range(first, last):
        writer.write(content(i))
    writer.close()
    return str(path)


def array_record_reader(folder: Path) -> tuple[Callable[..., Any], list[list[Any]]]:
    paths = [write_array_record(folder / "a", 0, 17), write_array_record(folder / "b", 17, COUNT, group=7)]
    wanted = [[record] for path in paths for record in array_record_module.ArrayRecordReader(path).read_all()]
    return lambda **order: fn.readers.array_record(paths, **order), wanted


LANCE = ["image", "label", "x", "text", "vector", "list"]


def lance_table(first: int, last: int) -> Any:
    numbers = range(first, last)
    return pa.table(
        {
            "image": pa.array([None if i == 5 else content(i) for i in numbers], pa.large_binary()),
            "label": [i % 3 for i in numbers],
            "x": pa.array([None if i == 8 else i / 2 for i in numbers], pa.float32()),
            "text": [None if i == 7 else "ü" * (i % 5) for i in numbers],
            "vector": pa.array([np.full(4, i, np.float32) for i in numbers], pa.list_(pa.float32(), 4)),
            "list": [list(range(i % 4)) for i in numbers],
        }
    )  # fmt: skip


def write_lance(folder: Path) -> str:
    path = str(folder / "rows.lance")
    lance.write_dataset(lance_table(0, 25), path, max_rows_per_file=10)
    lance.write_dataset(lance_table(25, COUNT + 4), path, mode="append")
    lance.dataset(path).delete("label = 1 AND x > 18")  # deleted rows in the middle of fragments
    return path


def lance_reader(folder: Path) -> tuple[Callable[..., Any], list[list[Any]]]:
    path = write_lance(folder)
    wanted = [
        [
            row["image"] or b"", ("int32", (1,), [row["label"]]),
            ("float32", (0,), []) if row["x"] is None else ("float32", (1,), [row["x"]]), (row["text"] or "").encode(),
            ("float32", (4,), list(row["vector"])), ("int64", (len(row["list"]),), row["list"]),
        ]
        for row in lance.dataset(path).to_table().to_pylist()
    ]  # fmt: skip
    assert len(wanted) > 30
    return lambda **order: fn.readers.lance(path, columns=LANCE, label="label", **order), wanted


def jpeg(i: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.full((8 + i, 9, 3), i, np.uint8)).save(file, "JPEG")
    return file.getvalue()


def write_litdata(folder: Path, count: int = COUNT) -> str:
    path = folder / "litdata"
    writer = BinaryWriter(str(path), chunk_size=7)
    for i in range(count):
        writer[i] = {
            "n": i, "image": Jpeg(bytes=jpeg(i)), "vector": np.full(1 + i % 3, i, np.float32), "data": content(i),
            "text": "ü" * (i % 5), "map": np.full((2, 1 + i % 2), i, np.int64), "object": {i},
        }  # fmt: skip
    writer.done()
    writer.merge()
    return str(path)


def litdata_reader(folder: Path) -> tuple[Callable[..., Any], list[list[Any]]]:
    path = write_litdata(folder)
    names = ["n", "image", "vector", "data", "text", "map"]
    wanted = [
        [
            ("int64", (), i), jpeg(i), ("float32", (1 + i % 3,), [float(i)] * (1 + i % 3)), content(i),
            ("ü" * (i % 5)).encode(), ("int64", (2, 1 + i % 2), [[i] * (1 + i % 2)] * 2),
        ]
        for i in range(COUNT)
    ]  # fmt: skip
    return lambda **order: fn.readers.litdata(path, columns=names, **order), wanted


def write_fits(path: Path, i: int) -> None:
    image = np.arange((2 + i % 3) * 5, dtype="i2").reshape(-1, 5) + i
    units = [fits.PrimaryHDU(np.full((2, 3), i, "f4")), fits.ImageHDU(image.astype("u2")), fits.CompImageHDU(image)]
    fits.HDUList(units).writeto(path)


def fits_reader(folder: Path) -> tuple[Callable[..., Any], list[list[Any]]]:
    for i in range(COUNT):
        write_fits(folder / f"{i:02}.fits", i)
    wanted = []
    for i in range(COUNT):
        with fits.open(folder / f"{i:02}.fits") as file:
            wanted.append([(u.data.dtype.newbyteorder("=").name, u.data.shape, u.data.tolist()) for u in file])
    return lambda **order: fn.experimental.readers.fits(file_root=str(folder), hdu_indices=[1, 2, 3], **order), wanted


READERS = {"array_record": array_record_reader, "lance": lance_reader, "litdata": litdata_reader, "fits": fits_reader}


# ---- laws of all four ----


@pytest.mark.parametrize("make", READERS.values(), ids=READERS)
def test_rows_are_those_of_the_library_in_every_order(
    make: Callable[[Path], tuple[Callable[..., Any], list[list[Any]]]], tmp_path: Path
) -> None:
    read, wanted = make(tmp_path)
    for settings in ({"batch_size": 1, "num_threads": 1}, {"batch_size": 7, "num_threads": 3}):
        assert [plain(row) for row in rows(read, **settings)] == wanted
    order = [3, 3, len(wanted) - 1, 0, 12]
    assert [plain(row) for row in rows(lambda: read(sampler=order))] == [wanted[i] for i in order]
    windowed = [plain(row) for row in rows(lambda: read(sampler=samplers.Windowed(block=4, window=2)))]
    shuffled = [plain(row) for row in rows(lambda: read(random_shuffle=True))]
    for found in (windowed, shuffled):
        assert sorted(map(repr, found)) == sorted(map(repr, wanted))
        assert found != wanted


@pytest.mark.parametrize("make", READERS.values(), ids=READERS)
def test_states_and_shards(
    make: Callable[[Path], tuple[Callable[..., Any], list[list[Any]]]], tmp_path: Path
) -> None:  # fmt: skip
    read, wanted = make(tmp_path)

    def define() -> Any:
        return read(random_shuffle=True, num_shards=2, shard_id=1)

    with pipeline(define, batch_size=3) as pipe:
        pipe.next()
        state = pipe.get_state()
        rest = [plain(row) for row in epoch(pipe)]
    with pipeline(define, batch_size=5) as pipe:
        pipe.set_state(state)
        assert [plain(row) for row in epoch(pipe)] == rest
    assert len(rest) + 3 in (len(wanted) // 2, (len(wanted) + 1) // 2)


# ---- ArrayRecord ----


def test_damaged_array_records_fail_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "a"
    writer = array_record_module.ArrayRecordWriter(str(path), "group_size:1,uncompressed")
    for i in range(9):
        writer.write(bytes([i]) * 100_000)
    writer.close()
    raw = bytearray(path.read_bytes())
    at = raw.index(b"\x04" * 1000)
    raw[at : at + 4] = b"spoi"
    path.write_bytes(raw)
    with pytest.raises(DataError, match=r"cannot read record 4 of .*hash mismatch"):
        rows(lambda: fn.readers.array_record(str(path)))
    found = rows(lambda: fn.readers.array_record(str(path), on_error="skip"), batch_size=9)
    assert [int(r[0][0]) for r in found] == [0, 1, 2, 3, 5, 6, 7, 8]


def test_array_record_files_that_cannot_be_read(tmp_path: Path) -> None:
    path = Path(write_array_record(tmp_path / "a", 0, 9))
    raw = path.read_bytes()
    for size in (0, 1, 100, len(raw) // 2, len(raw) - 1000):
        (tmp_path / "cut").write_bytes(raw[:size])
        with pytest.raises(ArgumentError, match="expected an ArrayRecord file"):
            rows(lambda: fn.readers.array_record(str(tmp_path / "cut")))
    with pytest.raises(ArgumentError, match="there is none at"):
        rows(lambda: fn.readers.array_record(str(tmp_path / "none")))
    empty = write_array_record(tmp_path / "empty", 0, 0)
    with pytest.raises(ArgumentError, match="expected records in 1 files"):
        rows(lambda: fn.readers.array_record(empty))
    paths = [write_array_record(tmp_path / f"{i}", i, i + 2) for i in range(3)]
    with pipeline(lambda: fn.readers.array_record([*paths, empty]), batch_size=2, prefetch_queue_depth=1) as pipe:
        pipe.build()
        write_array_record(Path(paths[2]), 0, 3)
        assert [r[0].tobytes() for r in zip(*pipe.run(), strict=True)] == [content(0), content(1)]
        with pytest.raises(DataError, match="as it was when the pipeline was built, it has changed"):
            epoch(pipe)


def test_few_array_record_files_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_record, "_MOST_OPEN", 3)
    paths = [write_array_record(tmp_path / f"{i}", i, i + 1) for i in range(20)]

    def opened() -> int:
        links = [f"/proc/self/fd/{n}" for n in os.listdir("/proc/self/fd")]
        return sum(os.path.realpath(link) in paths for link in links)

    order = {"sampler": [*range(20), *range(20)]}
    with pipeline(lambda: fn.readers.array_record(paths, **order), batch_size=4, num_threads=2) as pipe:
        found = []
        for _ in range(10):
            found += [np.array(row) for row in pipe.run()[0]]
            assert opened() <= 3 + 4  # those in the table, and those in calls of a few batches
    assert [f.tobytes() for f in found] == [content(i) for i in (*range(20), *range(20))]
    assert opened() == 0


def test_large_groups_are_noted(tmp_path: Path) -> None:
    path = write_array_record(tmp_path / "a", 0, 9, group=4)
    with pytest.warns(RuntimeWarning, match="groups of 4 records.*`group_size:1`"):
        assert len(rows(lambda: fn.readers.array_record(path))) == 9


# ---- Lance ----


def test_versions_of_lance(tmp_path: Path) -> None:
    path = write_lance(tmp_path)
    first = lance.dataset(path, version=1)

    def labels(source: Any) -> list[int]:
        return [int(r[0][0]) for r in rows(lambda: fn.readers.lance(source, columns=["label", "image"]))]

    assert labels(first) == [i % 3 for i in range(25)]
    with pipeline(lambda: fn.readers.lance(path, columns=["image"]), batch_size=4, prefetch_queue_depth=1) as pipe:
        pipe.build()
        wanted = [row["image"] or b"" for row in lance.dataset(path).to_table(columns=["image"]).to_pylist()]
        lance.write_dataset(lance_table(0, 3), path, mode="append")
        lance.dataset(path).delete("label = 2")
        state = pipe.get_state()
        assert [r[0].tobytes() for r in epoch(pipe)] == wanted  # those of the version that was opened
    newer = pipeline(lambda: fn.readers.lance(path, columns=["image"]), batch_size=4)
    with newer, pytest.raises(StateError, match="data"):
        newer.set_state(state)


def test_lance_data_sets_that_cannot_be_read(tmp_path: Path) -> None:
    path = write_lance(tmp_path)

    def fault(source: Any, columns: Any, text: str, **arguments: Any) -> None:
        with pytest.raises(ArgumentError, match=text):
            rows(lambda: fn.readers.lance(source, columns=columns, **arguments))

    fault([1], "image", r"expected a lance\.LanceDataset, or a folder")
    fault(str(tmp_path / "none"), "image", "there is none at")
    fault(str(tmp_path), "image", "expected a Lance data set in")
    fault(path, ["image", "no"], "expected `columns` among 'image'")
    fault(path, ["x"], "expected a column of whole numbers as `label`", label="x")
    fault(path, ["image"], "expected `columns` among 'image', got 'label'", label="label")
    lance.dataset(path).delete("true")
    fault(path, "image", "with rows, got an empty one")


def test_lance_files_that_vanish_fail_their_rows(tmp_path: Path) -> None:
    path = write_lance(tmp_path)
    part = next(iter(lance.dataset(path).get_fragments())).data_files()[0].path
    with pipeline(lambda: fn.readers.lance(path, columns="image", on_error="skip"), batch_size=5) as pipe:
        pipe.build()
        (Path(path) / "data" / part).unlink()
        found = [r[0].tobytes() for r in epoch(pipe)]
    assert found == [row["image"] or b"" for row in lance_table(10, 20).to_pylist()] + found[10:]
    with pytest.raises(DataError, match=r"cannot read row 0 of '.*rows\.lance'"):
        rows(lambda: fn.readers.lance(path, columns="image"))


# ---- LitData ----


def test_pickled_values_of_litdata_are_bytes(tmp_path: Path) -> None:
    path = write_litdata(tmp_path, 3)
    found = rows(lambda: fn.readers.litdata(path, columns="object"))
    assert [(r[0].dtype, r[0][0]) for r in found] == [(np.uint8, 0x80)] * 3  # the first byte of a pickle
    decoded = rows(lambda: fn.decoders.image(fn.readers.litdata(path, columns="image")["image"]))
    assert [r[0].shape for r in decoded] == [(8 + i, 9, 3) for i in range(3)]


def test_litdata_samples_that_are_tuples(tmp_path: Path) -> None:
    writer = BinaryWriter(str(tmp_path / "d"), chunk_bytes=1 << 12)
    for i in range(9):
        writer[i] = (content(i), i)
    writer.done()
    writer.merge()
    found = rows(lambda: fn.readers.litdata(str(tmp_path / "d"), num_outputs=2))
    assert [(r[0].tobytes(), int(r[1])) for r in found] == [(content(i), i) for i in range(9)]


def test_litdata_folders_that_cannot_be_read(tmp_path: Path) -> None:
    def fault(text: str, path: str = str(tmp_path)) -> None:
        with pytest.raises(ArgumentError, match=text):
            rows(lambda: fn.readers.litdata(path, columns="n"))

    fault("give `litdata.StreamingDataset", "s3://bucket/data")
    fault("there is none at")
    (tmp_path / "index.json").write_text("{")
    fault("expected JSON in")
    (tmp_path / "index.json").write_text('{"chunks": [{}], "config": {}}')
    fault("got another form")
    for packed in ('"compression": "zstd"', '"encryption": {"a": 1}', '"item_loader": "TokensLoader"'):
        (tmp_path / "index.json").write_text(f'{{"chunks": [], "config": {{{packed}}}}}')
        fault("without compression, encryption or token blocks")
    (tmp_path / "index.json").write_text('{"chunks": [], "config": {}}')
    fault("expected at least one sample")


def test_litdata_chunks_that_are_cut_off_fail_their_rows(tmp_path: Path) -> None:
    path = write_litdata(tmp_path, 21)
    chunk = sorted(Path(path).glob("chunk*"))[1]
    chunk.write_bytes(chunk.read_bytes()[:40])
    found = rows(lambda: fn.readers.litdata(path, columns="n", on_error="skip"), batch_size=4)
    assert [int(r[0]) for r in found] == [*range(7), *range(14, 21)]


# ---- FITS ----


@pytest.mark.parametrize("kind", ["u1", "i1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"])
def test_types_of_fits(kind: str, tmp_path: Path) -> None:
    image = np.arange(24).reshape(2, 3, 4).astype(kind)
    fits.HDUList([fits.PrimaryHDU(), fits.ImageHDU(image)]).writeto(tmp_path / "a.fits")
    (found,) = rows(lambda: fn.experimental.readers.fits(files=[str(tmp_path / "a.fits")]))
    assert (found[0].dtype, found[0].tolist()) == (np.dtype(kind), image.tolist())
    declared = types.FLOAT if kind == "u1" else types.UINT8
    with pytest.raises(ArgumentError, match="as `dtypes` says"):
        rows(lambda: fn.experimental.readers.fits(files=[str(tmp_path / "a.fits")], dtypes=[declared]))


@pytest.mark.parametrize("compression", ["RICE_1", "GZIP_1", "GZIP_2", "PLIO_1", "HCOMPRESS_1"])
def test_compressed_fits(compression: str, tmp_path: Path) -> None:
    image = (np.arange(64 * 48).reshape(64, 48) % 251).astype("i2")
    unit = fits.CompImageHDU(image, compression_type=compression)
    zeros = fits.CompImageHDU(np.zeros((512, 512), "i2"), compression_type=compression)
    fits.HDUList([fits.PrimaryHDU(), unit, zeros]).writeto(tmp_path / "a.fits")
    (found,) = rows(lambda: fn.experimental.readers.fits(files=[str(tmp_path / "a.fits")], hdu_indices=[2, 3]))
    assert np.array_equal(found[0], image)
    assert found[1].shape == (512, 512)
    assert not found[1].any()


def test_scaled_fits(tmp_path: Path) -> None:
    unit = fits.ImageHDU(np.arange(6, dtype="i2"))
    unit.header["BSCALE"], unit.header["BZERO"] = 0.5, 1.0
    fits.HDUList([fits.PrimaryHDU(), unit]).writeto(tmp_path / "a.fits")
    (found,) = rows(lambda: fn.experimental.readers.fits(file_root=str(tmp_path)))
    assert (found[0].dtype, found[0].tolist()) == (np.float32, [1, 1.5, 2, 2.5, 3, 3.5])


def test_names_of_fits(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for i, name in enumerate(["in/b.fits", "in/a.fits", "c.fit", "z.fits"]):
        write_fits(tmp_path / name, i)
    (tmp_path / "list.txt").write_text("c.fit\nin/b.fits\n")

    def first(**arguments: Any) -> list[int]:
        return [int(r[0][0, 0]) for r in rows(lambda: fn.experimental.readers.fits(hdu_indices=1, **arguments))]

    assert first(file_root=str(tmp_path)) == [1, 0, 3]
    assert first(file_root=str(tmp_path), file_filter="*.fit") == [2]
    assert first(file_list=str(tmp_path / "list.txt")) == [2, 0]
    assert first(files=["z.fits", "c.fit"], file_root=str(tmp_path)) == [3, 2]


def test_damaged_fits_fail_their_rows(tmp_path: Path) -> None:
    for i in range(6):
        write_fits(tmp_path / f"{i}.fits", i)
    raw = (tmp_path / "1.fits").read_bytes()
    (tmp_path / "1.fits").write_bytes(raw[:2880])
    (tmp_path / "2.fits").write_bytes(b"")
    (tmp_path / "3.fits").write_bytes(raw.replace(b"NAXIS2  =                    3", b"NAXIS2  =           1000000000"))
    fits.HDUList([fits.PrimaryHDU(), fits.ImageHDU(np.zeros((2, 3), "f4"))]).writeto(
        tmp_path / "4.fits", overwrite=True
    )
    found = rows(
        lambda: fn.experimental.readers.fits(file_root=str(tmp_path), on_error="skip"), batch_size=6, error_limit=1.0
    )
    assert [int(r[0][0, 0]) for r in found] == [0, 5]
    for i, text in ((1, "cannot read|HDU"), (2, "cannot read"), (3, "bytes of a file"), (4, "as in the first file")):
        names = [f"{n}.fits" for n in (0, i)]
        with pytest.raises(DataError, match=text):
            rows(lambda names=names: fn.experimental.readers.fits(files=names, file_root=str(tmp_path)))


def test_fits_files_that_cannot_be_read(tmp_path: Path) -> None:
    write_fits(tmp_path / "a.fits", 0)
    table = fits.BinTableHDU.from_columns([fits.Column(name="a", format="J", array=[1, 2])])
    fits.HDUList([fits.PrimaryHDU(), table]).writeto(tmp_path / "b.fits")

    def fault(text: str, name: str = "a.fits", **arguments: Any) -> None:
        with pytest.raises(ArgumentError, match=text):
            rows(lambda: fn.experimental.readers.fits(files=[str(tmp_path / name)], **arguments))

    fault("expected at least 4 HDUs, got 3", hdu_indices=[4])
    fault("numbers from 1 on", hdu_indices=[0])
    fault("expected an image in HDU 2, got a BinTableHDU", "b.fits")
    fault("got one without data", "b.fits", hdu_indices=1)
    fault("a type for each of 2 outputs", hdu_indices=[1, 2], dtypes=[types.FLOAT])
    fault("none in the first 1 files", "none.fits")
    found = rows(
        lambda: fn.experimental.readers.fits(
            files=[str(tmp_path / "a.fits")], hdu_indices=[1, 2], dtypes=[types.FLOAT, types.UINT16]
        )
    )
    assert [x.dtype for x in found[0]] == [np.float32, np.uint16]


def test_fits_cut_at_every_place(tmp_path: Path) -> None:
    write_fits(tmp_path / "a.fits", 0)
    raw = (tmp_path / "a.fits").read_bytes()
    names = [str(tmp_path / "a.fits")]
    for size in range(0, len(raw), 557):
        names.append(str(tmp_path / f"{size}.bin"))
        Path(names[-1]).write_bytes(raw[:size])
    define = lambda: fn.experimental.readers.fits(files=names, hdu_indices=[1, 2, 3], on_error="skip")  # noqa: E731
    found = [plain(row) for row in rows(define, batch_size=len(names), error_limit=1.0)]
    assert found[0] in found
    assert all(row == found[0] for row in found)  # a file is read whole or not at all


# ---- examples of the operator pages ----

EXAMPLES = ["experimental.readers.fits", "readers.array_record", "readers.lance", "readers.litdata"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name: str, tmp_path: Path) -> None:
    examples.write_photographs(tmp_path)
    example = examples.load(name)
    assert example is not None
    names, printed = examples.run(example, tmp_path)
    examples.close(names)
    assert printed
    assert [output.text for output in printed] == [output.expected for output in printed]
