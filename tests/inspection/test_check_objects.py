# SPDX-License-Identifier: Apache-2.0
"""``stoker check`` of objects, with a store in memory: portions, data sets of several objects, names, failures.

``tests/containers/real_check.py`` does the same with servers.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from containers import tar, tfrecord
from stoker import ArgumentError, DataError
from stoker.command import main
from stoker.inspection import object_copies
from stoker.inspection.check import CheckReport, check
from stoker.inspection.survey import Remark
from stoker.remote.block_cache import RemoteObject, identity_of
from tests.inspection.test_check_containers import COUNT, CUT, IMAGES, WITH_CUT, write_mds

ROOT = "s3://bucket/data"


class FakeStore:
    """Store of objects in memory. Objects with the content None cannot be read."""

    contents: dict[str, bytes | None] = {}  # noqa: RUF012 - of one test
    copied: list[str] = []  # noqa: RUF012

    def __init__(self, paths: Sequence[str], known: Mapping[str, RemoteObject] | None = None, *, keeps_blocks: bool):
        assert not keeps_blocks
        missing = [path for path in paths if path not in self.contents]
        if missing:
            raise ArgumentError(f"cannot read '{missing[0]}': there is no such object")
        self.objects = {path: (known or {}).get(path) or facts(path) for path in paths}

    def read_all(self, path: str, file: Any) -> None:
        content = self.contents[self.objects[path].path]
        if content is None:
            raise DataError(f"cannot read '{path}' at byte 0: status 500")
        self.copied.append(path)
        file.write(content)

    def close(self) -> None:
        return


def facts(path: str) -> RemoteObject:
    size = len(FakeStore.contents[path] or b"")
    return RemoteObject(path, size, '"1"', identity_of(path, size, "1"))


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes | None]:
    def objects_below(name: str, root: str) -> dict[str, RemoteObject]:
        above = f"{root.rstrip('/')}/"
        return {path.removeprefix(above): facts(path) for path in contents if path.startswith(above)}

    contents: dict[str, bytes | None] = {}
    monkeypatch.setattr(FakeStore, "contents", contents)
    monkeypatch.setattr(FakeStore, "copied", [])
    monkeypatch.setattr(object_copies, "RemoteStore", FakeStore)
    monkeypatch.setattr(object_copies, "objects_below", objects_below)
    return contents


def folder(contents: dict[str, bytes | None], names: Mapping[str, bytes | None]) -> CheckReport:
    contents.update({f"{ROOT}/{name}": content for name, content in names.items()})
    return check(ROOT)


def bad(report: CheckReport) -> list[tuple[str, int | None, Remark]]:
    return [(str(f.path), f.record, f.remark) for f in report.bad]


def test_images_and_containers_below_an_address(store: dict[str, bytes | None]) -> None:
    members = [(f"{n}.jpg", image) for n, image in enumerate(WITH_CUT)]
    report = folder(
        store,
        {
            "a.jpg": IMAGES[0], "b/cut.jpg": WITH_CUT[CUT], "b/c.tar": tar(members),
            "b/d.tfrecord": tfrecord([b"x"] * 3),
            "notes.txt": b"no image and no container", ".hidden/e.jpg": b"not looked at", "b/.f.jpg": b"nor this",
        },
    )  # fmt: skip
    assert bad(report) == [
        (f"{ROOT}/b/cut.jpg", None, Remark.TRUNCATED), (f"{ROOT}/b/c.tar", CUT, Remark.TRUNCATED),
    ]  # fmt: skip
    assert (report.files, report.containers, report.records, report.ignored) == (4, 2, COUNT + 3, 1)
    assert f"{ROOT}/b/c.tar, record {CUT} ({CUT}.jpg): truncated" in str(report)
    assert len(FakeStore.copied) == 5


def test_portions_are_bounded(store: dict[str, bytes | None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_copies, "_PORTION_BYTES", len(IMAGES[0]) + len(IMAGES[1]))
    names = {f"{n}.jpg": IMAGES[n] for n in range(COUNT)}
    store.update({f"{ROOT}/{name}": content for name, content in names.items()})
    listed = object_copies.list_objects(ROOT)
    folders: list[Path] = []
    seen: list[str] = []
    for portion in object_copies.copies_of(ROOT, listed):
        assert not any(earlier.exists() for earlier in folders), "the portion before is deleted"
        files = sorted(path.name for path in portion.folder.iterdir())
        assert all((portion.folder / name).read_bytes() == names[name] for name in files)
        size = sum(len(names[name]) for name in files)
        assert len(files) == 1 or size <= object_copies._PORTION_BYTES
        folders.append(portion.folder)
        seen += files
    assert seen == sorted(names) and len(folders) > 2
    assert not any(earlier.exists() for earlier in folders)
    monkeypatch.setattr(object_copies, "_PORTION_OBJECTS", 3)
    monkeypatch.setattr(object_copies, "_PORTION_BYTES", 1 << 30)
    assert [len(p.addresses) for p in object_copies.copies_of(ROOT, listed)] == [3, 3, 1]
    assert check(ROOT).findings == []


def test_shards_of_mds_have_their_index(
    store: dict[str, bytes | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every portion, also for a shard alone. The index is one object, and no container."""
    path = write_mds(tmp_path, WITH_CUT)
    index = (tmp_path / "index.json").read_bytes()
    shards = {f"mds/{path.name}": path.read_bytes(), "mds/index.json": index}
    for count in (1, 512):
        monkeypatch.setattr(object_copies, "_PORTION_OBJECTS", count)
        report = folder(store, shards)
        assert bad(report) == [(f"{ROOT}/mds/{path.name}", CUT, Remark.TRUNCATED)]
        assert (report.files, report.containers, report.ignored) == (1, 1, 1)
    alone = check(f"{ROOT}/mds/{path.name}")
    assert (bad(alone), alone.files, alone.ignored) == (bad(report), 1, 0)
    del store[f"{ROOT}/mds/index.json"]
    (finding,) = check(f"{ROOT}/mds/{path.name}").bad
    assert "expected a data set with an index.json" in finding.detail


def test_data_sets_are_copied_as_a_whole(store: dict[str, bytes | None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_copies, "_PORTION_OBJECTS", 1)
    lance = ["x/_versions/1.manifest", "x/data/a.lance", "x/data/b.lance"]
    litdata = ["lit/chunk-0-0.bin", "lit/chunk-0-1.bin", "lit/index.json"]
    others = ["y/chunk-0-0.bin", "lit/z.jpg"]
    store.update({f"{ROOT}/{name}": b'{"chunk_bytes": 1}' for name in [*lance, *litdata, *others]})
    portions = [set(p.addresses) for p in object_copies.copies_of(ROOT, object_copies.list_objects(ROOT))]
    assert sorted(map(sorted, portions)) == sorted([lance, litdata, *([name] for name in others)])


def test_an_object_alone(store: dict[str, bytes | None]) -> None:
    for address in (f"{ROOT}/a%20b.tar", "https://host/a.tar", "gs://bucket/deep/a.tar", "az://bucket/a.tar"):
        store[address] = tar([(f"{n}.jpg", image) for n, image in enumerate(WITH_CUT)])
        report = check(address)
        assert bad(report) == [(address, CUT, Remark.TRUNCATED)]
        assert (report.files, report.containers, report.records) == (1, 1, COUNT)


def test_objects_that_cannot_be_read_are_findings(store: dict[str, bytes | None]) -> None:
    report = folder(store, {"a.jpg": IMAGES[0], "b.jpg": None, "c": IMAGES[1], "c/d.jpg": IMAGES[2], "../e": b"x"})
    found = {str(f.path).removeprefix(ROOT): f for f in report.bad}
    assert found["/b.jpg"].remark is Remark.UNREADABLE and "status 500" in found["/b.jpg"].detail
    clash = found.keys() & {"/c", "/c/d.jpg"}  # a folder cannot have the name of a file
    assert len(clash) == 1 and found["/../e"].detail == "expected a name inside of its folder"
    assert (len(found), report.files) == (3, 5)


def test_the_command(store: dict[str, bytes | None], capsys: pytest.CaptureFixture[str]) -> None:
    store[f"{ROOT}/a.jpg"] = WITH_CUT[CUT]
    assert main(["check", ROOT]) == 1
    assert f"{ROOT}/a.jpg: truncated (the data end before" in capsys.readouterr().out
    assert main(["check", ROOT, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["findings"][0]["path"] == f"{ROOT}/a.jpg"
    for address in ("s3://bucket/none", "https://user:secret@host/a.tar", "https://host/a.tar?key=secret"):
        assert main(["check", address]) == 2
        printed = capsys.readouterr()
        assert "secret" not in printed.err + printed.out and "stoker check: " in printed.err


def test_the_package_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if importlib.util.find_spec("obstore") is not None:
        pytest.skip("obstore is installed")
    monkeypatch.undo()
    assert main(["check", "s3://bucket/data"]) == 2
    assert "extra `remote`: `pip install obstore`" in capsys.readouterr().err
