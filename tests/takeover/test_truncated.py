# SPDX-License-Identifier: Apache-2.0
"""Scripts with ``ImageFile.LOAD_TRUNCATED_IMAGES = True``: files that end early have Pillow's pixels."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torchvision.transforms as transforms
from photographs import photograph
from PIL import Image, ImageFile

import stoker.torchvision
from stoker.frontends.torchvision import counts
from stoker.frontends.torchvision.ir.recipe import Node
from stoker.frontends.torchvision.materialize import trial
from stoker.frontends.torchvision.reference import trial_cache
from stoker.frontends.torchvision.reference.replay import LenientJpegFile, replay
from stoker.frontends.torchvision.transport.source import Source
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily
from tests.takeover.scripts import run


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the flag in this process, as scripts do."""
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)


def _jpeg(seed: int, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.fromarray(photograph(seed, 90, 120)).save(file, "JPEG", **options)
    return file.getvalue()


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A folder of whole, truncated and otherwise damaged files."""
    for i in range(16):
        data = bytearray(_jpeg(i, progressive=i % 4 == 2, subsampling=i % 3))
        start = data.index(b"\xff\xda")
        if i % 4 in (1, 2):
            del data[start + 20 + (len(data) - start) * i // 16 :]
        elif i == 3:
            data[start + 200 : start + 260] = bytes(range(60))
        elif i == 7:
            data = data[: start + 14] + b"\xff\xd9"
        (tmp_path / f"{i:02}.jpg").write_bytes(data)
    Image.fromarray(photograph(20, 90, 120)).convert("CMYK").save(tmp_path / "inks.jpg")
    (tmp_path / "inks.jpg").write_bytes((tmp_path / "inks.jpg").read_bytes()[:3000])
    return tmp_path


class Files(torch.utils.data.Dataset[Any]):
    """Images of a folder, as scripts read them."""

    def __init__(self, root: Path, *, sets_flag: bool = False) -> None:
        self.files = sorted(root.glob("*.jpg"))
        self.sets_flag = sets_flag
        self.transform = transforms.Compose(
            [transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
        )

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        if self.sets_flag:  # in a worker: the main process has other settings
            ImageFile.LOAD_TRUNCATED_IMAGES = True
        with open(self.files[index], "rb") as file:
            image = Image.open(file).convert("RGB")
        looked_at = int(np.asarray(image)[50, 60].sum()) if index % 5 == 0 else -1
        return self.transform(image), looked_at


def _batches(root: Path, workers: int, **options: Any) -> list[Any]:
    return run(torch.utils.data.DataLoader(Files(root, **options), batch_size=4, shuffle=True, num_workers=workers))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_script_that_accepts_truncated_files(damaged: Path, lenient: None, workers: int) -> None:
    untouched = _batches(damaged, workers)
    counts.reset()
    with stoker.torchvision.enabled():
        ours = _batches(damaged, workers)
    for (a, seen), (b, seen_too) in zip(untouched, ours, strict=True):
        exactly(a, b)
        exactly(seen, seen_too)
    if not workers:
        # file 7, whose data end at an end marker, and the inks; all truncated files are decoded natively
        assert counts.totals()[counts.PILLOW] == 2


def test_a_flag_that_only_workers_have(damaged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", False)
    untouched = _batches(damaged, 2, sets_flag=True)
    with stoker.torchvision.enabled():
        ours = _batches(damaged, 2, sets_flag=True)
    assert not ImageFile.LOAD_TRUNCATED_IMAGES
    for (a, _), (b, _) in zip(untouched, ours, strict=True):
        exactly(a, b)


def test_without_the_flag_a_truncated_file_is_an_error(damaged: Path) -> None:
    with pytest.raises(OSError, match="truncated") as untouched:
        _batches(damaged, 0)
    with stoker.torchvision.enabled(), pytest.raises(OSError, match="truncated") as ours:
        _batches(damaged, 0)
    assert str(ours.value) == str(untouched.value)


@pytest.mark.parametrize("progressive", [False, True])
def test_the_plain_twin_needs_no_flag(progressive: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    data = _jpeg(5, progressive=progressive)
    start = data.index(b"\xff\xda") + 14
    for end in range(start, len(data), 97):
        with monkeypatch.context() as changed:
            changed.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", True)
            expected = np.asarray(Image.open(io.BytesIO(data[:end])))
        exactly(np.asarray(LenientJpegFile(io.BytesIO(data[:end]))), expected)
        node = Node.decode(Source.from_bytes(data[:end]), (120, 90), 3, is_lenient=True)
        exactly(np.asarray(replay(node)), expected)


@pytest.mark.parametrize("is_equal", [False, True])
def test_another_libjpeg_keeps_these_files(is_equal: bool, lenient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Pillow whose libjpeg completes truncated files otherwise reads all files of such scripts itself."""
    assert trial.pillow_truncates_equally()
    monkeypatch.setitem(trial_cache._answers, ("Pillow's decoder, truncated",), is_equal)
    with lazily():
        image: Any = Image.open(io.BytesIO(_jpeg(3)))
        assert (image._recorded_node() is not None) == is_equal


def test_the_trial_finds_other_estimates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_left_to_pillow", lambda data: bytes(64 * 48 * 3))
    assert not trial._pillow_truncates_equally()
