# SPDX-License-Identifier: Apache-2.0
"""Files that workers tell of, and that are gone for good when the batch is made, or come again if asked for."""

from __future__ import annotations

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
from stoker.frontends.torchvision import counts, told
from tests.takeover.scripts import run

import torchvision.transforms as transforms  # isort: skip

_TRANSFORM = transforms.Compose([transforms.RandomResizedCrop(48), transforms.ToTensor()])


def tell_of_new_files(worker: int) -> None:
    """In a worker, however it was started: files count as settled at once."""
    told._SETTLED_S = -1.0


@pytest.fixture(autouse=True)
def begin_anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever a test finds out, the next one begins as if nothing were known."""
    monkeypatch.setattr(told, "_SETTLED_S", -1.0)
    told.resume()
    counts.reset()
    yield
    told.resume()
    counts.reset()


def equal(a: list[Any], b: list[Any]) -> None:
    for x, y in zip(a, b, strict=True):
        assert all(torch.equal(p, q) for p, q in zip(x, y, strict=True))


# ---- used up: a second look finds nothing ----


def delete(path: Path) -> None:
    """It goes."""
    path.unlink()


def move(path: Path) -> None:
    """It goes to another place."""
    path.rename(path.with_suffix(".done"))


def replace(path: Path) -> None:
    """Another file comes into its place."""
    new = path.with_suffix(".new")
    new.write_bytes(b"nothing")
    new.replace(path)


def remove_folder(path: Path) -> None:
    """The folder that it was in goes."""
    shutil.rmtree(path.parent)


class Using(torch.utils.data.Dataset[Any]):
    """Every file is used up where it is opened; with ``look`` some images are looked at after that."""

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
        seen = int(np.asarray(image)[3, 5].sum()) if self.look and index % 3 == 0 else -1
        return _TRANSFORM(image), seen


class UsingAtOnce(Using):
    """The same, all files of a batch at a time."""

    def __getitems__(self, indices: list[int]) -> list[tuple[Any, int]]:
        images = []
        for index in indices:
            with open(self.files[index], "rb") as file:
                images.append(Image.open(file).convert("RGB"))
        for index in indices:
            self.then(self.files[index])
        return [(_TRANSFORM(image), -1) for image in images]


def used(
    root: Path, room: Path, then: Callable[[Path], None], workers: int, *, kind: type[Using] = Using, **options: Any
) -> list[Any]:
    """All batches of files that are there for one epoch."""
    copies = []
    for at, source in enumerate(sorted(root.rglob("[0-9].jpg"))):
        copies.append(room / f"{workers}{at}" / "x.jpg")
        copies[-1].parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copies[-1])
    data = kind(copies, then, look=options.pop("look", False))
    start = tell_of_new_files if workers else None
    return run(
        torch.utils.data.DataLoader(
            data, batch_size=4, shuffle=True, num_workers=workers, worker_init_fn=start, **options
        )
    )


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("then", [delete, move, replace, remove_folder])
def test_files_that_are_used_up(
    files: Path, tmp_path: Path, then: Callable[[Path], None], workers: int, look: bool
) -> None:
    untouched = used(files, tmp_path / "a", then, workers, look=look)
    with stoker.torchvision.enabled():
        ours = used(files, tmp_path / "b", then, workers, look=look)
        assert told._stopped == bool(workers), "from then on workers copy"
    equal(untouched, ours)
    assert not counts.total()[counts.RETRIED]


def test_files_that_are_used_up_by_spawned_workers(files: Path, tmp_path: Path) -> None:
    untouched = used(files, tmp_path / "a", delete, 2)
    with stoker.torchvision.enabled():
        ours = used(files, tmp_path / "b", delete, 2, multiprocessing_context="spawn")
        assert told._stopped
    equal(untouched, ours)


@pytest.mark.leaks("a loader that has raised takes torch seconds to end, with and without Stoker")
@pytest.mark.parametrize("most", [1, 256])
@pytest.mark.parametrize("kind", [Using, UsingAtOnce])
def test_files_stay_open_up_to_a_number(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Using], most: int
) -> None:
    """One that goes while the sample that opened it is made is found with any number, others if they are still open."""
    untouched = used(files, tmp_path / "a", delete, 2, kind=kind)
    monkeypatch.setattr(told, "_MOST_OPEN", most)
    with stoker.torchvision.enabled():
        ours = functools.partial(used, files, tmp_path / "b", delete, 2, kind=kind)
        if kind is UsingAtOnce and most == 1:
            with pytest.raises(FileNotFoundError, match="in DataLoader worker process"):
                ours()
        else:
            equal(untouched, ours())


def test_descriptors_are_closed(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told, "_in_worker", True)
    monkeypatch.setattr(told, "_flags", [np.zeros(1, np.int64)])
    monkeypatch.setattr(told, "_most_open", 3)
    before = len(os.listdir("/proc/self/fd"))

    def open_all() -> list[Any]:
        return [Image.open(path).convert("RGB") for path in sorted((files / "bee").glob("[0-9].jpg"))]

    def opened() -> int:
        return len(os.listdir("/proc/self/fd")) - before

    with stoker.torchvision.enabled():
        told.begin()
        images: Any = open_all()
        assert len(images) == 6 and all(image._node.source.told for image in images)
        assert opened() == len(told._now.open) == 3
        told.settle()
        assert opened() == 0 and all(image._node.source.told for image in images)
        told.begin()
        again = open_all()
        assert opened() == 3
        told.end()  # of a batch that could not be fetched
        assert opened() == 0
        del images, again
    told._now.told.clear()
    told._now.earlier.clear()


def test_without_descriptors_to_spare(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script's own files come first."""

    class Full:
        def dup(self, fd: int) -> int:
            raise OSError("too many open files")

        def __getattr__(self, name: str) -> Any:
            return getattr(os, name)

    monkeypatch.setattr(told, "os", Full())
    untouched = evicted(files, tmp_path, 2)
    with stoker.torchvision.enabled():
        equal(untouched, evicted(files, tmp_path, 2))


# ---- what comes again ----


class Cache(torch.utils.data.Dataset[Any]):
    """Files are fetched into a folder that all workers share and that holds two; the others are deleted."""

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
        assert told._stopped


# ---- what goes on its way to the main process ----


class Leaving:
    """Deletes files when it is sent, which is after the batch has been fetched."""

    def __init__(self, paths: list[Path]) -> None:
        self.paths = paths

    def __reduce__(self) -> Any:
        for path in self.paths:
            path.unlink()
        return torch.zeros, (1,)


class Bringing(torch.utils.data.Dataset[Any]):
    """Files are brought where they are opened, if ``again`` also a second time."""

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
    """A collation."""
    return [torch.stack([image for image, _ in batch]), Leaving([path for _, path in batch])]


@pytest.mark.leaks("a loader that has raised takes torch seconds to end, with and without Stoker")
@pytest.mark.parametrize("again", [True, False])
def test_files_that_go_on_the_way(files: Path, tmp_path: Path, again: bool) -> None:
    """The batch is fetched again, and what the data set says then is what there is."""
    made = functools.partial(
        torch.utils.data.DataLoader, batch_size=4, num_workers=1, collate_fn=leaving, prefetch_factor=1
    )
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    untouched = run(made(Bringing(files, tmp_path / "a", again=again)))
    loader = made(Bringing(files, tmp_path / "b", again=again))
    with stoker.torchvision.enabled():
        if again:
            assert all(torch.equal(a[0], b[0]) for a, b in zip(untouched, run(loader), strict=True))
            assert told._stopped and counts.total()[counts.RETRIED]
        else:
            with pytest.raises(FileNotFoundError, match="in DataLoader worker process 0") as raised:
                run(loader)
            assert "a second time: cannot read '" in str(raised.value)
            assert "The above exception" not in str(raised.value), "what it says is the data set's"
