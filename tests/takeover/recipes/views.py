# SPDX-License-Identifier: Apache-2.0
"""Self-supervised training: several views of every image, in the shapes of MoCo v3, DINO, SimCLR and MAE."""

from __future__ import annotations

import random
from typing import Any

import torch
from PIL import ImageFilter, ImageOps
from torch.utils.data import DataLoader

import tests.takeover.declared  # noqa: F401

import torchvision.datasets as datasets  # isort: skip
import torchvision.transforms as transforms  # isort: skip
from torchvision.transforms import InterpolationMode  # isort: skip

_NORMALIZE = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])


class Blur:
    """Pillow's blur with a random radius."""

    def __init__(self, sigma: tuple[float, float] = (0.1, 2.0)) -> None:
        self.sigma = sigma

    def __call__(self, image: Any) -> Any:
        return image.filter(ImageFilter.GaussianBlur(radius=random.uniform(*self.sigma)))


class Solarize:
    """Pillow's solarization."""

    def __call__(self, image: Any) -> Any:
        return ImageOps.solarize(image)


class Both:
    """Two views."""

    def __init__(self, first: Any, second: Any) -> None:
        self.first = first
        self.second = second

    def __call__(self, image: Any) -> Any:
        return [self.first(image), self.second(image)]


def _moco(blur: float, solarize: float) -> Any:
    return transforms.Compose(
        [
            transforms.RandomResizedCrop(224, scale=(0.08, 1.0)),
            transforms.RandomApply([transforms.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8),
            transforms.RandomGrayscale(p=0.2),
            transforms.RandomApply([Blur((0.1, 2.0))], p=blur),
            transforms.RandomApply([Solarize()], p=solarize),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            _NORMALIZE,
        ]
    )


def moco_v3(root: str, workers: int) -> Any:
    """Return a loader of two views that differ in blur and solarisation."""
    dataset = datasets.ImageFolder(root, Both(_moco(1.0, 0.0), _moco(0.1, 0.2)))
    return DataLoader(dataset, batch_size=16, shuffle=True, num_workers=workers, drop_last=True)


class MultiCrop:
    """Two global and eight local crops."""

    def __init__(self) -> None:
        colours = transforms.Compose(
            [
                transforms.RandomHorizontalFlip(p=0.5),
                transforms.RandomApply([transforms.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8),
                transforms.RandomGrayscale(p=0.2),
            ]
        )
        last = transforms.Compose([transforms.ToTensor(), _NORMALIZE])

        def view(size: int, scale: tuple[float, float], blur: float, solarize: float) -> Any:
            crop = transforms.RandomResizedCrop(size, scale=scale, interpolation=InterpolationMode.BICUBIC)
            effects = [transforms.RandomApply([Blur()], p=blur), transforms.RandomApply([Solarize()], p=solarize)]
            return transforms.Compose([crop, colours, *effects, last])

        self.views = [view(224, (0.4, 1.0), 1.0, 0.0), view(224, (0.4, 1.0), 0.1, 0.2)]
        self.views += [view(96, (0.05, 0.4), 0.5, 0.0)] * 8

    def __call__(self, image: Any) -> Any:
        return [view(image) for view in self.views]


def dino(root: str, workers: int) -> Any:
    """Return a loader of ten views."""
    dataset = datasets.ImageFolder(root, MultiCrop())
    return DataLoader(dataset, batch_size=8, shuffle=True, num_workers=workers, drop_last=True)


def simclr(root: str, workers: int) -> Any:
    """Return a loader of two views of one chain, with torchvision's blur."""
    chain = transforms.Compose(
        [
            transforms.RandomResizedCrop(size=96),
            transforms.RandomHorizontalFlip(),
            transforms.RandomApply([transforms.ColorJitter(0.8, 0.8, 0.8, 0.2)], p=0.8),
            transforms.RandomGrayscale(p=0.2),
            transforms.GaussianBlur(kernel_size=9),
            transforms.ToTensor(),
        ]
    )
    dataset = datasets.ImageFolder(root, Both(chain, chain))
    return DataLoader(dataset, batch_size=16, shuffle=True, num_workers=workers, drop_last=True)


def mae(root: str, workers: int) -> Any:
    """Return a loader of one bicubic view, with the share of one of two processes."""
    dataset = datasets.ImageFolder(
        root,
        transforms.Compose(
            [
                transforms.RandomResizedCrop(224, scale=(0.2, 1.0), interpolation=InterpolationMode.BICUBIC),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                _NORMALIZE,
            ]
        ),
    )
    sampler: Any = torch.utils.data.DistributedSampler(dataset, num_replicas=2, rank=1, shuffle=True)
    return DataLoader(dataset, sampler=sampler, batch_size=16, num_workers=workers, pin_memory=True, drop_last=True)
