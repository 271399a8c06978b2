# SPDX-License-Identifier: Apache-2.0
"""``stoker pack`` and ``stoker unpack``: round trips, resumption after an interruption, faults."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import containers
from stoker import ArgumentError, fn, tfrecord
from stoker.inspection import pack, shard_files, unpack
from tests.containers.data import rows

MAGIC = containers.MAGIC
KINDS = ("tar", "tfrecord", "rec", "mds")


def write(folder: Path) -> dict[str, bytes]:
    """Write files in classes and return them by name."""
    files = {f"{c}/{i}.jpg": np.random.default_rng(i).bytes(200 + 99 * i) for c in ("b", "a") for i in range(6)}
    files |= {"a/empty.jpg": b"", "b/magic.jpg": MAGIC * 2 + b"x" + MAGIC, "n" * 90 + "/" + "m" * 90 + ".jpg": b"long"}
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    (folder / ".hidden").write_bytes(b"hidden")
    return files


def found(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def run(folder: Path, out: Path, limit: int = 2000, **options: Any) -> list[Path]:
    return pack.pack(folder, out, limit_bytes=limit, extensions=None, **{"verify": True, **options})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [0, 2000])
def test_files_come_back(tmp_path: Path, kind: str, limit: int) -> None:
    files = write(tmp_path / "in")
    shards = run(tmp_path / "in", tmp_path / f"out.{kind}", limit)
    assert (len(shards) > 1) == bool(limit)
    unpack.unpack(shards if kind != "mds" else [tmp_path / "out.mds"], tmp_path / "back")
    assert found(tmp_path / "back") == files
    left = {p.name for p in tmp_path.rglob(".*")} - {".hidden"}
    assert not left


@pytest.mark.parametrize("kind", KINDS)
def test_readers_read_the_shards(tmp_path: Path, kind: str) -> None:
    files = write(tmp_path / "in")
    paths = list(map(str, run(tmp_path / "in", tmp_path / f"out.{kind}")))
    features = {"image/encoded": tfrecord.FixedLenFeature((), tfrecord.string),
                "image/class/label": tfrecord.FixedLenFeature([1], tfrecord.int64)}  # fmt: skip
    define: dict[str, Any] = {
        "tar": lambda: fn.readers.webdataset(paths=paths, ext="jpg"),
        "tfrecord": lambda: fn.readers.tfrecord(path=paths, features=features),
        "rec": lambda: fn.readers.mxnet(path=paths),
        "mds": lambda: fn.readers.mds(path=str(tmp_path / "out.mds"), columns=["image", "label"]),
    }
    read = rows(define[kind])
    assert [row[0].tobytes() for row in read] == [files[name] for name in sorted(files)]
    if kind != "tar":
        classes = sorted({name.rpartition("/")[0] for name in files})
        assert [int(row[1][0]) for row in read] == [classes.index(n.rpartition("/")[0]) for n in sorted(files)]


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupted_run_is_continued(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    files = write(tmp_path / "in")
    writer = shard_files.WRITERS[kind]
    added = []

    def add(self: Any, sample: Any, content: bytes) -> None:
        added.append(sample.name)
        if len(added) == 9:
            raise KeyboardInterrupt
        original(self, sample, content)

    original = writer.add
    with monkeypatch.context() as changed, pytest.raises(KeyboardInterrupt):
        changed.setattr(writer, "add", add)
        run(tmp_path / "in", tmp_path / f"out.{kind}")
    assert not list(tmp_path.rglob("*.part"))
    complete = {p.name: p.stat().st_ino for p in tmp_path.rglob(f"*.{kind}") if p.is_file()}
    assert complete
    shards = run(tmp_path / "in", tmp_path / f"out.{kind}")
    assert complete.items() <= {p.name: p.stat().st_ino for p in shards}.items()
    unpack.unpack(shards if kind != "mds" else [tmp_path / "out.mds"], tmp_path / "back")
    assert found(tmp_path / "back") == files
    with pytest.raises(ArgumentError, match="expected no shards yet"):
        run(tmp_path / "in", tmp_path / f"out.{kind}")


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_written_is_compared(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "in")
    writer = shard_files.WRITERS[kind]
    original = writer.add
    monkeypatch.setattr(writer, "add", lambda self, sample, content: original(self, sample, content[:-1] + b"?"))
    with pytest.raises(OSError, match="does not contain what was written"):
        run(tmp_path / "in", tmp_path / f"out.{kind}")
    assert not [p for p in tmp_path.rglob(f"*.{kind}") if p.is_file()]
    assert run(tmp_path / "in", tmp_path / f"out.{kind}", verify=False)


@pytest.mark.parametrize("name", ["../x", "/x", "a/../../x", "."])
def test_names_that_lead_out_of_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.tar").write_bytes(containers.tar([(name, b"x")], form=tarfile.GNU_FORMAT))
    with pytest.raises(ArgumentError, match="expected names of files below the folder"):
        unpack.unpack([tmp_path / "a.tar"], tmp_path / "to")
    assert not (tmp_path / "x").exists()


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "link").symlink_to(tmp_path)
    (tmp_path / "a.tar").write_bytes(containers.tar([("link/x", b"x")]))
    with pytest.raises(ArgumentError, match="expected a folder without links"):
        unpack.unpack([tmp_path / "a.tar"], tmp_path / "to")
    assert not (tmp_path / "x").exists()


def test_zip_archives_are_unpacked_too(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(containers.stored_zip([("c/1.jpg", b"one"), ("2.txt", b"")]))
    assert unpack.main([str(tmp_path / "a.zip"), "--to", str(tmp_path / "to")]) == 0
    assert found(tmp_path / "to") == {"c/1.jpg": b"one", "2.txt": b""}


def test_the_commands_report_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "in")
    assert pack.main([str(tmp_path / "in"), str(tmp_path / "out.7z")]) == 2
    assert "expected a name that ends with .tar" in capsys.readouterr().err
    assert pack.main([str(tmp_path / "none"), str(tmp_path / "out.tar")]) == 1
    assert pack.main([str(tmp_path / "in"), str(tmp_path / "out.tar"), "--extensions", ".png"]) == 2
    assert pack.main([str(tmp_path / "in"), str(tmp_path / "out.tar")]) == 0
    assert "1 shard, " in capsys.readouterr().out
    (tmp_path / "out.tar").write_bytes((tmp_path / "out.tar").read_bytes()[:1300])
    assert unpack.main([str(tmp_path / "out.tar"), "--to", str(tmp_path / "to")]) == 2
    assert "damaged" in capsys.readouterr().err
