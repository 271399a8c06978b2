# SPDX-License-Identifier: Apache-2.0
"""``readers.mxnet``: labels, records in parts, index files, damage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from containers import MAGIC, image_record, recordio
from stoker import ArgumentError, DataError, fn
from tests.containers.data import epoch, pipeline, plain, rows


def write(folder: Path, *records: bytes, name: str = "a.rec") -> str:
    (folder / name).write_bytes(recordio(records)[0])
    return str(folder / name)


def read(path: Any, **arguments: Any) -> list[list[Any]]:
    return [plain(row) for row in rows(lambda: fn.readers.mxnet(path=path, **arguments))]


def floats(*values: float) -> tuple[str, tuple[int, ...], list[float]]:
    return "float32", (len(values),), list(values)


def test_images_and_labels(tmp_path: Path) -> None:
    records = [
        image_record(3.0, b"abc"),
        image_record([1.5, -2.0], b""),
        image_record([0.5], b"jpeg" * 9),
        image_record(0.0, b"x"),
    ]
    path = write(tmp_path, *records)
    assert read(path) == [
        [b"abc", floats(3.0)], [b"", floats(1.5, -2.0)], [b"jpeg" * 9, floats(0.5)], [b"x", floats(0.0)]
    ]  # fmt: skip


@pytest.mark.parametrize("image", [
    MAGIC, b"abcd" + MAGIC, MAGIC + b"abcd", MAGIC * 3, b"abcd" + MAGIC + b"ef", b"ab" + MAGIC, MAGIC + b"abc" + MAGIC,
    b"1234" + MAGIC + b"123456789" + MAGIC + b"12345678" + MAGIC + b"1",
])  # fmt: skip
def test_records_that_contain_the_magic_number_are_joined(tmp_path: Path, image: bytes) -> None:
    path = write(tmp_path, image_record(1.0, b"before"), image_record(2.0, image), image_record(3.0, b"after"))
    assert [row[0] for row in read(path)] == [b"before", image, b"after"]


def test_a_magic_number_in_the_header_of_a_record(tmp_path: Path) -> None:
    number = int.from_bytes(MAGIC, "little")
    path = write(tmp_path, image_record(1.0, b"abc", number), image_record(2.0, b"d"))
    assert [row[0] for row in read(path)] == [b"abc", b"d"]


def test_index_files_of_users_are_read(tmp_path: Path) -> None:
    records = [image_record(float(i), bytes([65 + i]) * (i + 1)) for i in range(6)]
    paths = [write(tmp_path, *records[:4], name="a.rec"), write(tmp_path, *records[4:], name="b.rec")]
    begin = recordio(records)[1]
    index = tmp_path / "a.idx"

    def found(text: str) -> list[bytes]:
        index.write_text(text)
        return [row[0] for row in read(paths, index_path=[str(index)])]

    everything = [b"A", b"BB", b"CCC", b"DDDD", b"EEEEE", b"FFFFFF"]
    assert found("".join(f"{9 - k}\t{at}\n" for k, at in enumerate(begin))) == everything
    assert found("".join(f"0 {at}\n" for at in (*begin, *begin))) == everything
    assert found("".join(f"0 {at}\n" for at in begin[::2])) == [b"A", b"CCC", b"EEEEE"]
    for text, wrong in (
        (f"0 {begin[0]}\nx\n", "line 2"),
        ("0 100000\n", "expected offsets below"),
        ("0 -1\n", "line 1"),
    ):
        with pytest.raises(ArgumentError, match=wrong):
            found(text)
    with pytest.raises(DataError, match="bytes without the magic number"):
        found("0 4\n")
    with pytest.raises(ArgumentError, match="one index file for all files as `index_path`, got 2"):
        read(paths, index_path=[str(index)] * 2)


@pytest.mark.filterwarnings("ignore:.*is damaged at byte")
def test_a_file_cut_at_any_byte_has_all_records_before_and_one_bad_one(tmp_path: Path) -> None:
    records = [image_record(1.0, b"abc"), image_record([1.0, 2.0], b"1234" + MAGIC + b"1"), image_record(2.0, b"defgh")]
    whole, begin = recordio(records)
    path = tmp_path / "cut.rec"
    images = [b"abc", b"1234" + MAGIC + b"1", b"defgh"]
    for size in range(begin[1] + 1, len(whole)):
        path.write_bytes(whole[:size])
        define = lambda: fn.readers.mxnet(path=str(path), name="r")  # noqa: E731
        with pipeline(define, on_error="skip", batch_size=1, error_limit=1.0) as pipe:
            found = [row[0].tobytes() for row in epoch(pipe)]
            count = pipe.epoch_size("r")
        assert found == images[: len(found)]
        assert len(found) >= sum(at <= size for at in begin[1:]) and count - len(found) in (0, 1)
        assert count == len(found) or size < len(whole)
    for size in range(8):
        path.write_bytes(whole[:size])
        with pytest.raises(ArgumentError, match=r"got none|got another format"):
            read(str(path))


@pytest.mark.filterwarnings("ignore:.*is damaged at byte")
def test_records_that_are_no_images_are_errors_of_their_rows(tmp_path: Path) -> None:
    bad = [b"", b"short", image_record([1.0, 2.0], b"")[:28], b"\xff" * 40]
    path = write(tmp_path, image_record(1.0, b"good"), *bad)
    for sample in range(1, 5):
        with (
            pipeline(lambda s=sample: fn.readers.mxnet(path=path, sampler=[s])) as pipe,  # type: ignore[misc]
            pytest.raises(DataError, match="expected labels and an image in a record, got"),
        ):
            pipe.run()
    assert len(rows(lambda: fn.readers.mxnet(path=path, on_error="skip"), error_limit=1.0)) == 1


def test_joined_readers(tmp_path: Path) -> None:
    paths = [write(tmp_path, image_record(float(k), bytes([65 + k])), name=f"{k}.rec") for k in range(2)]
    found = rows(lambda: fn.readers.concat([fn.readers.mxnet(path=p) for p in paths]))
    assert [(i.tobytes(), float(x[0]), int(p[0])) for i, x, p in found] == [(b"A", 0.0, 0), (b"B", 1.0, 1)]
