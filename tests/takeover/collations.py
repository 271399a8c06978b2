# SPDX-License-Identifier: Apache-2.0
"""Collation functions as scripts write them, and loaders that use them."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision.transforms as transforms
from torch.utils.data import DataLoader, default_collate
from torchvision.transforms import v2

from tests.takeover.scripts import Folder

Batch = list[Any]


def pair(images: Any, labels: Any) -> Any:
    return torch.stack(list(images)), torch.tensor(labels)


def mixed_up(batch: Batch) -> Any:
    """Apply MixUp like torchvision's references."""
    choice = v2.RandomChoice([v2.MixUp(alpha=0.2, num_classes=2), v2.CutMix(alpha=1.0, num_classes=2)])
    return choice(*default_collate(batch))


def by_hand(batch: Batch) -> Any:
    """Apply MixUp with a permutation, like many scripts."""
    images, labels = default_collate(batch)
    part = random.random()
    order = torch.randperm(len(images))
    return part * images + (1 - part) * images[order], labels, labels[order]


def by_numpy(batch: Batch) -> Any:
    """Apply MixUp with a NumPy number, to the batch in reverse and in another order."""
    images, labels = default_collate(batch)
    part = np.random.beta(1.0, 1.0)
    order = np.random.permutation(len(images))
    mixed = part * images + (1 - part) * images.flip(0)
    return mixed, images.mul(np.float32(part)) + images[order] * (1 - np.float32(part)), labels, torch.tensor(part)


def cut_by_numpy(batch: Batch) -> Any:
    """Apply CutMix or MixUp in place like timm's ``Mixup``: assign a window, or a sum, in the batch itself."""
    images, labels = default_collate(batch)
    y, x = np.random.randint(0, 30, 2)
    images[:, :, y : y + 20, x : x + 25] = images.flip(0)[:, :, y : y + 20, x : x + 25]
    return images, labels


def mixed_row_by_row(batch: Batch) -> Any:
    """Mix each row with a window and a share of its own."""
    images, labels = default_collate(batch)
    before = images.clone()
    parts = np.random.beta(1.0, 1.0, len(images)).astype(np.float32)
    for at, part in enumerate(parts):
        y, x = np.random.randint(0, 30, 2)
        if part < 0.4:
            images[at][:, y : y + 20, x : x + 25] = before[-1 - at][:, y : y + 20, x : x + 25]
        else:
            images[at] = images[at] * part + before[-1 - at] * (1 - part)
    return images, labels


def padded_to_largest(batch: Batch) -> Any:
    """Pad to the largest image like the references' segmentation, with ``new`` and ``fill_``."""
    images, labels = zip(*batch, strict=True)
    size = tuple(max(s) for s in zip(*[image.shape for image in images], strict=True))
    together = images[0].new(len(images), *size).fill_(0.5)
    for image, room in zip(images, together, strict=True):
        room[..., : image.shape[-2], : image.shape[-1]].copy_(image)
    return together, labels


def padded_in_the_middle(batch: Batch) -> Any:
    """Assign images to windows of a new batch, with an index and with slices."""
    images, labels = zip(*batch, strict=True)
    height, width = (max(image.shape[d] for image in images) + 3 for d in (1, 2))
    together = torch.full((len(images), 3, height, width), -1.0)
    mask = torch.ones((len(images), height, width), dtype=torch.bool)
    for at, image in enumerate(images):
        h, w = image.shape[1:]
        if at % 2:
            together[at, :, 1 : 1 + h, 2 : 2 + w] = image
        else:
            together[at][:, 1 : 1 + h, 2 : 2 + w] = image
        mask[at, 1 : 1 + h, 2 : 2 + w] = False
    return together, mask, labels


def bytes_added(batch: Batch) -> Any:
    """Collate like timm's ``fast_collate``."""
    together = torch.zeros((len(batch), *batch[0][0].shape), dtype=torch.uint8)
    for at, (image, _) in enumerate(batch):
        together[at] += image
    return together, torch.tensor([label for _, label in batch])


def bytes_copied(batch: Batch) -> Any:
    """Collate bytes with ``copy_``."""
    together = torch.zeros((len(batch), *batch[0][0].shape), dtype=torch.uint8)
    for at, (image, _) in enumerate(batch):
        together[at].copy_(image)
    return together, torch.tensor([label for _, label in batch])


def bytes_mixed(batch: Batch) -> Any:
    """Mix like timm's ``FastCollateMixup``."""
    together = torch.zeros((len(batch), *batch[0][0].shape), dtype=torch.uint8)
    for at, (image, _) in enumerate(batch):
        both = image.float() * 0.3 + batch[-1 - at][0].float() * 0.7
        torch.round(both, out=both)
        together[at] += both.byte()
    return together, [label for _, label in batch]


def bytes_cut(batch: Batch) -> Any:
    """Cut like timm's ``FastCollateMixup`` with CutMix: assign windows of images before the images enter the batch."""
    together = torch.zeros((len(batch), *batch[0][0].shape), dtype=torch.uint8)
    for at, part in enumerate(np.random.beta(1.0, 1.0, len(batch)).astype(np.float32)):
        image, other = batch[at][0], batch[-1 - at][0]
        y, x = np.random.randint(0, 30, 2)
        if part < 0.6:
            image = image.clone()
            image[:, y : y + 20, x : x + 25] = other[:, y : y + 20, x : x + 25]
        else:
            image = image.float() * part + other.float() * (1 - part)
            torch.round(image, out=image)
        together[at] += image.byte()
    return together, [label for _, label in batch]


def bytes_cut_alike(batch: Batch) -> Any:
    """Cut the same window in the whole batch, timm's default."""
    together = torch.zeros((len(batch), *batch[0][0].shape), dtype=torch.uint8)
    for at, (image, _) in enumerate(batch):
        cut = image.clone()
        cut[:, 5:30, 9:40] = batch[-1 - at][0][:, 5:30, 9:40]
        together[at] += cut.byte()
    return together, [label for _, label in batch]


def bytes_exchanged(batch: Batch) -> Any:
    """Exchange windows of two images each."""
    together = torch.zeros((len(batch), *batch[0][0].shape), dtype=torch.uint8)
    for at in range(len(batch) // 2):
        one, two = batch[at][0], batch[-1 - at][0]
        y, x = np.random.randint(0, 30, 2)
        window = one[:, y : y + 20, x : x + 25].clone()
        one[:, y : y + 20, x : x + 25] = two[:, y : y + 20, x : x + 25]
        two[:, y : y + 20, x : x + 25] = window
        together[at] += one.byte()
        together[len(batch) - 1 - at] += two.byte()
    if len(batch) % 2:
        together[len(batch) // 2] += batch[len(batch) // 2][0]
    return together, [label for _, label in batch]


def both_ways(batch: Batch) -> Any:
    """Return a batch and a result of it, in containers."""
    images, labels = default_collate(batch)
    return [images, (images.roll(1, 0).mul_(0.25), images.flip(0) - images)], labels


def padded_and_mixed(batch: Batch) -> Any:
    together, labels = padded_to_largest(batch)
    return together.roll(1, 0).mul_(0.75).add_(together.mul(0.25)), labels


def forced_early(batch: Batch) -> Any:
    """Branch on a value."""
    images, labels = default_collate(batch)
    rolled = images.roll(1, 0)
    return (rolled if rolled.mean() > 0 else images), labels


LAZY: dict[str, Callable[[Batch], Any]] = {
    f.__name__: f
    for f in (
        mixed_up, by_hand, by_numpy, cut_by_numpy, mixed_row_by_row, padded_to_largest, padded_in_the_middle,
        bytes_added, bytes_copied, bytes_mixed, bytes_cut, bytes_cut_alike, bytes_exchanged, both_ways,
        padded_and_mixed,
    )
}  # fmt: skip
EARLY = {"forced_early": forced_early}


def loader_of(files: Path, workers: int, name: str) -> Any:
    collate = (LAZY | EARLY)[name]
    steps: list[Any] = [transforms.RandomResizedCrop(56)]
    if name.startswith("padded"):
        steps = [transforms.RandomRotation(30, expand=True)]
    if name.startswith("bytes"):
        steps.append(transforms.PILToTensor())
    else:
        steps += [transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.25] * 3)]
        steps.append(transforms.RandomErasing(0.5))
    dataset = Folder(str(files), transforms.Compose(steps))
    return DataLoader(dataset, batch_size=4, shuffle=True, num_workers=workers, collate_fn=collate)
