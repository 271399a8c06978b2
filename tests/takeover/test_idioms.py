# SPDX-License-Identifier: Apache-2.0
"""Idioms of public training scripts around the usual transforms: their images are recorded."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageFile
from torch.utils.data.dataloader import default_collate
from torchvision import datasets, transforms

import stoker.torchvision
from stoker.frontends.torchvision import counts
from tests.takeover.conftest import exactly
from tests.takeover.scripts import run

TRANSFORM = transforms.Compose(
    [
        transforms.Lambda(lambda image: image if image.mode == "RGB" else image.convert("RGB")),
        transforms.RandomResizedCrop(48, scale=(0.6, 1.0)),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize(torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])),
    ]
)


class WithMask:
    """Transform that draws a mask of patches beside the image, for masked image modelling (SimMIM)."""

    def __call__(self, image: Any) -> Any:
        """Return the image and its mask."""
        mask = np.zeros(36, dtype=int)
        mask[np.random.permutation(36)[:20]] = 1
        return TRANSFORM(image), mask.reshape(6, 6).repeat(2, axis=0)


def collate_by_part(batch: list[Any]) -> list[Any]:
    """Collate images, masks and labels one after another."""
    parts = [default_collate([sample[0][at] for sample in batch]) for at in range(2)]
    return [*parts, default_collate([sample[1] for sample in batch])]


class Zipped(torch.utils.data.Dataset[Any]):
    """Images in a zip archive, which is opened at the first access and kept (Swin Transformer)."""

    archives: dict[Path, zipfile.ZipFile] = {}  # noqa: RUF012 - as in the script

    def __init__(self, path: Path) -> None:
        self.path = path
        with zipfile.ZipFile(path) as archive:
            self.names = archive.namelist()

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, index: int) -> Any:
        if self.path not in self.archives:
            self.archives[self.path] = zipfile.ZipFile(self.path)
        data = self.archives[self.path].read(self.names[index])
        return TRANSFORM(Image.open(io.BytesIO(data)).convert("RGB")), index


def _equal(loader: Any, images: int) -> None:
    expected = run(loader())
    counts.reset()
    with stoker.torchvision.enabled():
        ours = run(loader())
        total = counts.totals()
    assert total[counts.NATIVE] == images and not total[counts.FORCED]
    for one, other in zip(expected, ours, strict=True):
        for x, y in zip(one, other, strict=True):
            exactly(x, y)


@pytest.mark.parametrize("workers", [0, 2])
def test_masks_beside_the_images(files: Path, workers: int) -> None:
    data = datasets.ImageFolder(str(files), WithMask())
    options = {"batch_size": 4, "num_workers": workers, "collate_fn": collate_by_part}
    _equal(lambda: torch.utils.data.DataLoader(data, **options), len(data))


@pytest.mark.parametrize("is_lenient", [False, True])
def test_images_in_a_zip_archive(
    files: Path, tmp_path: Path, is_lenient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ImageFile, "LOAD_TRUNCATED_IMAGES", is_lenient)
    monkeypatch.setattr(Zipped, "archives", {})
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        for path in sorted(files.rglob("*.jpg")):
            archive.write(path, f"{path.parent.name}/{path.name}")
    data = Zipped(tmp_path / "images.zip")
    _equal(lambda: torch.utils.data.DataLoader(data, batch_size=4), len(data))
    data.archives.pop(data.path).close()
