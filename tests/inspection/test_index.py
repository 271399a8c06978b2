# SPDX-License-Identifier: Apache-2.0
"""``stoker index``: formats, damaged files, checksums, exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from containers import example, image_record, recordio, tar, tfrecord
from stoker.command import main


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    contents = {
        "a.tfrecord": tfrecord([example({"s": b"x" * 9})] * 3), "a.rec": recordio([image_record(1.0, b"abc")] * 4)[0],
        "a.tar": tar([("1.jpg", b"J"), ("1.cls", b"C")]),
    }  # fmt: skip
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return [tmp_path / name for name in contents]


def test_formats_and_numbers_of_records(files: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["index", "--read", *map(str, files)]) == 0
    lines = capsys.readouterr().out.splitlines()
    wanted = ("TFRecord, 3 records", "RecordIO, 4 records", "tar, 2 records")
    assert [text in line for text, line in zip(wanted, lines, strict=True)] == [True] * 3
    assert main(["index", "--json", str(files[1])]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["format"], facts["records"], facts["faults"]) == ("RecordIO", 4, [])


def test_damage_is_reported(files: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    whole = files[0].read_bytes()
    files[0].write_bytes(whole[:-8] + b"?" + whole[-7:])
    assert main(["index", str(files[0])]) == 0
    assert main(["index", "--read", str(files[0])]) == 1
    assert "record 2: expected the TFRecord at byte" in capsys.readouterr().out
    for path in files[1:]:
        path.write_bytes(path.read_bytes()[: 1200 if path.suffix == ".tar" else -2])
        assert main(["index", str(path)]) == 1
        assert "at byte" in capsys.readouterr().out


def test_files_that_are_no_containers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_bytes(b"some text that is long enough")
    assert main(["index", str(tmp_path / "a.txt")]) == 1
    assert "expected a TFRecord file, got another format" in capsys.readouterr().err
    assert main(["index", str(tmp_path / "none")]) == 2
    assert main(["index", str(tmp_path)]) == 1
    assert f"expected a container file, got the folder {str(tmp_path)!r}" in capsys.readouterr().err
