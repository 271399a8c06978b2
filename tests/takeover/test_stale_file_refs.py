# SPDX-License-Identifier: Apache-2.0
"""Stale file references: files that are gone when the batch is materialized, or that come back on a second fetch."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
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
from tests.takeover.lazily import lazily
from tests.takeover.scripts import release, run

import torchvision.transforms as transforms  # isort: skip

_TRANSFORM = transforms.Compose([transforms.RandomResizedCrop(48), transforms.ToTensor()])


def use_refs_for_new_files(worker: int) -> None:
    """Let a worker use references to new files immediately, with any start method."""
    file_refs._SETTLED_S = -1.0


@pytest.fixture(autouse=True)
def fresh_file_refs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """File references, enabled before and after the test, with fresh counts."""
    monkeypatch.setattr(file_refs, "_SETTLED_S", -1.0)
    file_refs.resume()
    counts.reset()
    yield
    file_refs.resume()
    counts.reset()


def equal(a: list[Any], b: list[Any]) -> None:
    for x, y in zip(a, b, strict=True):
        assert all(torch.equal(p, q) for p, q in zip(x, y, strict=True))


# ---- files that can be opened once ----


def delete(path: Path) -> None:
    """Delete the file."""
    path.unlink()


def move(path: Path) -> None:
    """Rename the file."""
    path.rename(path.with_suffix(".done"))


def replace(path: Path) -> None:
    """Replace the file by another one."""
    new = path.with_suffix(".new")
    new.write_bytes(b"nothing")
    new.replace(path)


def remove_folder(path: Path) -> None:
    """Delete the file's folder."""
    shutil.rmtree(path.parent)


class Consuming(torch.utils.data.Dataset[Any]):
    """Data set that consumes every file after opening it; with ``look`` it reads pixels of some images after that."""

    def __init__(self, files: list[Path], then: Callable[[Path], None], *, look: bool = False) -> None:
        self.files = files
        self.then = then
        self.look = look

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        with open(self.files[index], "rb") as file:
            image = Image.open(file).convert("RGB")
        self.then(self.files[index])
        total = int(np.asarray(image)[3, 5].sum()) if self.look and index % 3 == 0 else -1
        return _TRANSFORM(image), total


class ConsumingLater(Consuming):
    """Data set that opens all files of a batch before it consumes them."""

    def __getitems__(self, indices: list[int]) -> list[tuple[Any, int]]:
        images = []
        for index in indices:
            with open(self.files[index], "rb") as file:
                images.append(Image.open(file).convert("RGB"))
        for index in indices:
            self.then(self.files[index])
        return [(_TRANSFORM(image), -1) for image in images]


def read_consumed(
    root: Path,
    room: Path,
    then: Callable[[Path], None],
    workers: int,
    *,
    kind: type[Consuming] = Consuming,
    **options: Any,
) -> list[Any]:
    """Return all batches of an epoch over files that can be opened once."""
    copies = []
    for at, source in enumerate(sorted(root.rglob("[0-9].jpg"))):
        copies.append(room / f"{workers}{at}" / "x.jpg")
        copies[-1].parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copies[-1])
    data = kind(copies, then, look=options.pop("look", False))
    start = use_refs_for_new_files if workers else None
    return run(
        torch.utils.data.DataLoader(
            data, batch_size=4, shuffle=True, num_workers=workers, worker_init_fn=start, **options
        )
    )


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("then", [delete, move, replace, remove_folder])
def test_files_that_can_be_opened_once(
    files: Path, tmp_path: Path, then: Callable[[Path], None], workers: int, look: bool
) -> None:
    untouched = read_consumed(files, tmp_path / "a", then, workers, look=look)
    with stoker.torchvision.enabled():
        ours = read_consumed(files, tmp_path / "b", then, workers, look=look)
        assert file_refs._is_stopped == bool(workers), "from then on workers copy"
    equal(untouched, ours)
    assert not counts.totals()[counts.RETRIED]


def test_files_that_can_be_opened_once_by_spawned_workers(files: Path, tmp_path: Path) -> None:
    untouched = read_consumed(files, tmp_path / "a", delete, 2)
    with stoker.torchvision.enabled():
        ours = read_consumed(files, tmp_path / "b", delete, 2, multiprocessing_context="spawn")
        assert file_refs._is_stopped
    equal(untouched, ours)


@pytest.mark.parametrize("most", [1, 256])
@pytest.mark.parametrize("kind", [Consuming, ConsumingLater])
def test_files_stay_open_up_to_a_number(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Consuming], most: int
) -> None:
    """A file that goes during its own sample is found with any limit, and other files while they are still open."""
    untouched = read_consumed(files, tmp_path / "a", delete, 2, kind=kind)
    monkeypatch.setattr(file_refs, "_MAX_OPEN", most)
    with stoker.torchvision.enabled():
        ours = functools.partial(read_consumed, files, tmp_path / "b", delete, 2, kind=kind)
        if kind is ConsumingLater and most == 1:
            with pytest.raises(FileNotFoundError, match="in DataLoader worker process") as raised:
                ours()
            release(raised.value)
        else:
            equal(untouched, ours())


def test_descriptors_are_closed(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_refs, "_is_worker", True)
    monkeypatch.setattr(file_refs, "_flags", [np.zeros(1, np.int64)])
    monkeypatch.setattr(file_refs, "_max_open", 3)

    def open_all() -> list[Any]:
        return [Image.open(path).convert("RGB") for path in sorted((files / "bee").glob("[0-9].jpg"))]

    def opened() -> int:
        """Return the number of open files of the data set: other files of the process may be closed at any time."""
        found = 0
        for number in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):
                found += os.readlink(f"/proc/self/fd/{number}").startswith(f"{files}/")
        return found

    with lazily():
        file_refs.begin_batch()
        images: Any = open_all()
        assert len(images) == 6 and all(image._node.source.ref for image in images)
        assert opened() == len(file_refs._thread.open_files) == 3
        file_refs.copy_moved_files()
        assert opened() == 0 and all(image._node.source.ref for image in images)
        file_refs.begin_batch()
        again = open_all()
        assert opened() == 3
        file_refs.end_batch()  # the end of a batch that could not be fetched
        assert opened() == 0
        del images, again
    file_refs._thread.holders.clear()
    file_refs._thread.earlier.clear()


def test_without_descriptors_to_spare(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script's own files take precedence."""

    class Full:
        def dup(self, fd: int) -> int:
            raise OSError("too many open files")

        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

    monkeypatch.setattr(file_refs, "os", Full())
    untouched = evicted(files, tmp_path, 2)
    with stoker.torchvision.enabled():
        equal(untouched, evicted(files, tmp_path, 2))


# ---- files that come back ----


class Cache(torch.utils.data.Dataset[Any]):
    """Data set that fetches files into a shared folder of two files, and deletes the others."""

    def __init__(self, root: Path, room: Path) -> None:
        self.files = sorted(root.rglob("[0-9].jpg"))
        self.room = room

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, int]:
        at = self.room / f"{index}.jpg"
        while True:
            try:
                with open(at, "rb") as file:
                    image = Image.open(file).convert("RGB")
                break
            except FileNotFoundError:
                part = self.room / f"{index}.{os.getpid()}"
                shutil.copy(self.files[index], part)
                part.replace(at)
        for other in sorted(self.room.glob("*.jpg"), key=lambda path: path.name == at.name)[:-2]:
            other.unlink(missing_ok=True)
        return _TRANSFORM(image), index


def evicted(files: Path, room: Path, workers: int) -> list[Any]:
    loader = torch.utils.data.DataLoader(Cache(files, room), batch_size=4, shuffle=True, num_workers=workers)
    return run(loader, epochs=2)


def test_files_that_other_workers_delete(files: Path, tmp_path: Path) -> None:
    untouched = evicted(files, tmp_path, 2)
    with stoker.torchvision.enabled():
        equal(untouched, evicted(files, tmp_path, 2))
        assert file_refs._is_stopped


# ---- files that go after the batch was fetched ----


class Leaving:
    """Object that deletes files when it is pickled, which is after the batch has been fetched."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __reduce__(self) -> Any:
        for path in self.paths:
            path.unlink()
        return torch.zeros, (1,)


class Bringing(torch.utils.data.Dataset[Any]):
    """Data set that copies a file before it opens it; only the first time unless ``again``."""

    def __init__(self, root: Path, room: Path, *, again: bool) -> None:
        self.files = sorted(root.rglob("[0-9].jpg"))
        self.room = room
        self.again = again

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, Path]:
        at, mark = self.room / f"{index}.jpg", self.room / f"{index}.brought"
        if self.again or not mark.exists():
            shutil.copy(self.files[index], at)
            mark.touch()
        with open(at, "rb") as file:
            return _TRANSFORM(Image.open(file).convert("RGB")), at


def leaving(batch: list[Any]) -> Any:
    """Collate with an object that deletes the batch's files."""
    return [torch.stack([image for image, _ in batch]), Leaving([path for _, path in batch])]


@pytest.mark.parametrize("again", [True, False])
def test_files_that_are_deleted_before_delivery(files: Path, tmp_path: Path, again: bool) -> None:
    """The batch is fetched again, and the data set's own result or error counts."""
    loader_of = functools.partial(
        torch.utils.data.DataLoader, batch_size=4, num_workers=1, collate_fn=leaving, prefetch_factor=1
    )
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    untouched = run(loader_of(Bringing(files, tmp_path / "a", again=again)))
    loader = loader_of(Bringing(files, tmp_path / "b", again=again))
    with stoker.torchvision.enabled():
        if again:
            assert all(torch.equal(a[0], b[0]) for a, b in zip(untouched, run(loader), strict=True))
            assert file_refs._is_stopped and counts.totals()[counts.RETRIED]
        else:
            with pytest.raises(FileNotFoundError, match="in DataLoader worker process 0") as raised:
                run(loader)
            assert "a second time: cannot read '" in str(raised.value)
            assert "The above exception" not in str(raised.value), "the error is the data set's own"
            release(raised.value)
