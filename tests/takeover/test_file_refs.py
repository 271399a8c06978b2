# SPDX-License-Identifier: Apache-2.0
"""File references: files are read later, and must then be unchanged since the data set opened them."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import stoker.torchvision
from stoker.frontends.torchvision import counts
from stoker.frontends.torchvision.transport import file_refs
from stoker.native import _native
from tests.takeover.lazily import lazily
from tests.takeover.scripts import run

import torchvision.transforms as transforms  # isort: skip


class Passing(torch.utils.data.Dataset[Any]):
    """Data set that copies every image to a temporary file and opens it; ``then`` changes the file afterwards."""

    def __init__(self, root: Path, room: Path, then: Callable[[Path, Path], None], *, look: bool = False) -> None:
        self.files = sorted(root.rglob("[0-9].jpg"))
        self.room = room
        self.then = then
        self.look = look
        self.transform = transforms.Compose([transforms.RandomResizedCrop(48), transforms.ToTensor()])

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        at = self.room / f"{os.getpid()}.jpg"
        shutil.copy(self.files[index], at)
        with open(at, "rb") as file:
            image = Image.open(file).convert("RGB")
        self.then(at, self.files[-index])
        try:
            total = int(np.asarray(image)[3, 5].sum()) if self.look and index % 3 == 0 else -1
        except OSError:
            total = -2  # the script's own handling of damaged files
        return self.transform(image), total


def stay(path: Path, other: Path) -> None:
    """Leave the file as it is."""


def delete(path: Path, other: Path) -> None:
    """Delete the file."""
    path.unlink()


def write_over(path: Path, other: Path) -> None:
    """Overwrite the file with another image."""
    path.write_bytes(other.read_bytes())


@pytest.fixture
def fresh_file_refs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """File references, enabled before and after the test, also for new files."""
    monkeypatch.setattr(file_refs, "_SETTLED_S", -1.0)
    file_refs.resume()
    yield
    file_refs.resume()


def loader(data: Passing, workers: int) -> Any:
    return torch.utils.data.DataLoader(data, batch_size=4, shuffle=True, num_workers=workers)


def equal(a: Any, b: Any) -> None:
    for (x, total), (y, other) in zip(a, b, strict=True):
        assert torch.equal(x, y) and torch.equal(total, other)


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize("then", [stay, delete, write_over])
def test_files_that_change_after_opening(
    files: Path, tmp_path: Path, fresh_file_refs: None, then: Callable[[Path, Path], None], look: bool
) -> None:
    data = Passing(files, tmp_path, then, look=look)
    untouched = run(loader(data, 2))
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(loader(data, 2)))
        assert file_refs._is_stopped, "the next sample is written over the last one, whatever becomes of that"
        again = counts.totals()[counts.RETRIED]
        equal(untouched, run(loader(data, 2)))
        assert counts.totals()[counts.RETRIED] == again, "no worker sends references any more"


class Keeping(torch.utils.data.Dataset[Any]):
    """Data set that opens images once and keeps them; ``then`` changes a file when its image is requested again."""

    def __init__(self, root: Path, room: Path, then: Callable[[Path, Path], None]) -> None:
        self.files = sorted(root.rglob("[0-9].jpg"))
        self.room = room
        self.then = then
        self.kept: dict[int, Any] = {}
        self.transform = transforms.Compose([transforms.RandomResizedCrop(48), transforms.ToTensor()])

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        at = self.room / f"{index}.jpg"
        if index in self.kept:
            if at.exists():
                self.then(at, self.files[-index])
        else:
            shutil.copy(self.files[index], at)
            with open(at, "rb") as file:
                self.kept[index] = Image.open(file).convert("RGB")
        return self.transform(self.kept[index])


@pytest.mark.parametrize("then", [stay, delete, write_over])
def test_images_that_a_worker_keeps(
    files: Path, tmp_path: Path, fresh_file_refs: None, then: Callable[[Path, Path], None]
) -> None:
    """After two more batches, an image that a worker keeps no longer depends on its file."""
    data = Keeping(files, tmp_path, then)
    order = [*range(len(data)), *range(len(data))]
    assert len(data) >= 8, "three batches are between"

    def kept_images() -> Any:
        return torch.utils.data.DataLoader(data, batch_size=2, sampler=order, num_workers=1)

    untouched = run(kept_images())
    counts.reset()
    with stoker.torchvision.enabled():
        ours = run(kept_images())
    assert all(torch.equal(a, b) for a, b in zip(untouched, ours, strict=True))
    assert not file_refs._is_stopped and not counts.totals()[counts.RETRIED]


def test_files_that_have_just_been_written_are_copied(files: Path, tmp_path: Path) -> None:
    data = Passing(files, tmp_path, delete)
    untouched = run(loader(data, 2))
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(loader(data, 2)))
        assert not file_refs._is_stopped and not counts.totals()[counts.RETRIED]


def test_a_reference_is_sent_instead_of_the_bytes(
    files: Path, fresh_file_refs: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker copies no ordinary file, even if Pillow must read its header."""
    plain = sorted((files / "ant").glob("*.jpg"))
    with lazily():
        monkeypatch.setattr(file_refs, "_is_worker", True)
        monkeypatch.setattr(file_refs, "_flags", [np.zeros(1, np.int64)])
        file_refs.begin_batch()
        try:
            for path in (*plain, files / "bee" / "turned.jpg"):
                with open(path, "rb") as file:
                    image: Any = Image.open(file).convert("RGB" if path.name != "gray.jpg" else "L")
                source = None if path.name == "inks.jpg" else image._node.source
                assert source is None or source.ref.endswith(os.fsencode(path))
                if source is not None:
                    assert source.data.tobytes() == path.read_bytes()
        finally:
            file_refs.end_batch()


def test_relative_paths(files: Path, fresh_file_refs: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files / "ant")
    with open("0.jpg", "rb") as file:
        ref = file_refs.make_ref(file)
    with open(b"0.jpg", "rb") as file:
        assert file_refs.make_ref(file) == ref
    assert ref is not None
    monkeypatch.chdir("/")
    assert file_refs.read(ref).tobytes() == (files / "ant" / "0.jpg").read_bytes()
    descriptor = os.open(files / "ant" / "0.jpg", os.O_RDONLY)
    with open(descriptor, "rb") as file:
        assert file_refs.make_ref(file) is None, "it has no path"


def test_files_without_a_reference(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path / "x")
    for content in (b"", b"\xff\xd9", bytes(200), b"\xff\xd9" + bytes(64)):
        (tmp_path / "x").write_bytes(content)
        with open(path, "rb") as file:
            assert _native.recipe.make_file_ref(file.fileno(), path, -1.0) is None
    (tmp_path / "x").write_bytes(bytes(100) + b"\xff\xd9" + bytes(60))
    with open(path, "rb") as file:
        assert _native.recipe.make_file_ref(file.fileno(), path, -1.0) is not None
        assert _native.recipe.make_file_ref(file.fileno(), path + b"\0", -1.0) is None
        assert _native.recipe.make_file_ref(file.fileno(), path, 100.0) is None, "it has just been written"
    receiver, sender = os.pipe()
    assert _native.recipe.make_file_ref(receiver, path, -1.0) is None
    assert _native.recipe.make_file_ref(999, path, -1.0) is None
    os.close(receiver)
    os.close(sender)


def test_references_to_changed_files_are_refused(tmp_path: Path, fresh_file_refs: None) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(100) + b"\xff\xd9")
    with open(path, "rb") as file:
        ref = file_refs.make_ref(file)
    assert ref is not None and file_refs.read(ref).size == 102
    hostile = [b"", ref[:7], ref[:32], ref + b"/y", ref[:32] + os.fsencode(tmp_path), ref[:32] + b"\0"]
    hostile += [struct.pack("<Q", 7) + ref[8:], ref[:16] + struct.pack("<Q", 1 << 60) + ref[24:]]
    for wrong in hostile:
        with pytest.raises(file_refs.StaleFileRef):
            file_refs.read(wrong)
    order = _native.recipe.make_batch(
        np.array([0, -1, 3, 0, 0, 4, 4], np.float64), np.array([0, 7]), [hostile[-1]], [], [np.zeros(64, np.uint8)]
    )
    _native.recipe.materialize(order)
    assert order.failures == [(0, "")], "left to the reader of the file"
    path.write_bytes(bytes(101) + b"\xff\xd9")
    assert file_refs._is_stopped
    with pytest.raises(file_refs.StaleFileRef, match="as it was when it was opened"):
        file_refs.read(ref)
