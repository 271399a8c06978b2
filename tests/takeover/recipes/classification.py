# SPDX-License-Identifier: Apache-2.0
"""Supervised classification: the ImageNet example, torchvision's reference presets, streams of files."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch.utils.data import DataLoader

import tests.takeover.declared  # noqa: F401 - before torchvision, in spawned workers too

import torchvision.datasets as datasets  # isort: skip
import torchvision.transforms as transforms  # isort: skip
from torch.utils.data.dataloader import default_collate  # isort: skip
from torchvision.transforms import v2  # isort: skip
from torchvision.transforms.functional import InterpolationMode  # isort: skip

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
BATCH = 32


def imagenet(root: str, workers: int, **options: Any) -> Any:
    """Return a training loader in the shape of pytorch/examples."""
    normalize = transforms.Normalize(mean=list(MEAN), std=list(STD))
    train_dataset = datasets.ImageFolder(
        root,
        transforms.Compose(
            [transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(), normalize]
        ),
    )
    return DataLoader(train_dataset, BATCH, shuffle=True, num_workers=workers, pin_memory=True, **options)


def imagenet_spawned(root: str, workers: int) -> Any:
    """Return the same loader with spawned workers."""
    return imagenet(root, workers, **({"multiprocessing_context": "spawn"} if workers else {}))


def imagenet_validation(root: str, workers: int) -> Any:
    """Return a validation loader in the shape of pytorch/examples."""
    dataset = datasets.ImageFolder(
        root,
        transforms.Compose(
            [
                transforms.Resize(256),
                transforms.CenterCrop(224),
                transforms.ToTensor(),
                transforms.Normalize(mean=list(MEAN), std=list(STD)),
            ]
        ),
    )
    return DataLoader(dataset, BATCH, shuffle=False, num_workers=workers, pin_memory=True)


class RepeatedAugmentation(torch.utils.data.Sampler[int]):
    """Sampler that repeats every sample several times in a row, like the references' sampler."""

    def __init__(self, length: int, repetitions: int = 3) -> None:
        self.length = length
        self.repetitions = repetitions

    def __iter__(self) -> Iterator[int]:
        generator = torch.Generator()
        generator.manual_seed(0)
        order = torch.randperm(self.length, generator=generator).tolist()
        indices = [at for at in order for _ in range(self.repetitions)]
        return iter(indices[: math.ceil(self.length / BATCH) * BATCH][: self.length])

    def __len__(self) -> int:
        return self.length


def preset(library: Any, backend: str, policy: str) -> Any:
    """Return a training preset of the references, for either generation and backend."""
    second = library is v2
    steps: list[Any] = []
    if backend == "tensor":
        steps.append(library.PILToTensor())
    steps += [
        library.RandomResizedCrop(176, interpolation=InterpolationMode.BILINEAR, antialias=True),
        library.RandomHorizontalFlip(0.5),
        {
            "ra": lambda: library.RandAugment(interpolation=InterpolationMode.BILINEAR, magnitude=9),
            "ta_wide": lambda: library.TrivialAugmentWide(interpolation=InterpolationMode.BILINEAR),
            "augmix": lambda: library.AugMix(interpolation=InterpolationMode.BILINEAR, severity=3),
            "imagenet": lambda: library.AutoAugment(interpolation=InterpolationMode.BILINEAR),
        }[policy](),
    ]
    if backend == "pil":
        steps.append(library.PILToTensor())
    steps.append(library.ToDtype(torch.float32, scale=True) if second else library.ConvertImageDtype(torch.float32))
    steps += [library.Normalize(mean=MEAN, std=STD), library.RandomErasing(p=0.1)]
    if second:
        steps.append(library.ToPureTensor())
    return library.Compose(steps)


class MixedCollate:
    """Collation that also mixes images and labels."""

    def __init__(self, classes: int) -> None:
        self.mix = v2.RandomChoice(
            [v2.MixUp(alpha=0.2, num_classes=classes), v2.CutMix(alpha=1.0, num_classes=classes)]
        )

    def __call__(self, batch: list[Any]) -> Any:
        return self.mix(*default_collate(batch))


def reference(root: str, workers: int, library: Any, backend: str, policy: str, mixed: bool = False) -> Any:
    """Return a training loader in the shape of the references."""
    dataset = datasets.ImageFolder(root, preset(library, backend, policy))
    return DataLoader(
        dataset,
        batch_size=BATCH,
        sampler=RepeatedAugmentation(len(dataset)),
        num_workers=workers,
        pin_memory=True,
        collate_fn=MixedCollate(len(dataset.classes)) if mixed else None,
    )


class Shuffled(torch.utils.data.IterableDataset[Any]):
    """Stream of files, divided over the workers and shuffled in a buffer."""

    def __init__(self, root: str) -> None:
        self.files = sorted(str(p) for p in Path(root).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
        self.transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(224),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize(MEAN, STD),
            ]
        )

    def __iter__(self) -> Iterator[Any]:
        info = torch.utils.data.get_worker_info()
        first, step = (info.id, info.num_workers) if info is not None else (0, 1)
        rng = random.Random(info.seed if info is not None else 5)
        buffer: list[Any] = []
        for name in self.files[first::step]:
            with open(name, "rb") as file:
                buffer.append((Image.open(file).convert("RGB"), name))
            if len(buffer) >= 20:
                yield self._taken(buffer, rng)
        while buffer:
            yield self._taken(buffer, rng)

    def _taken(self, buffer: list[Any], rng: random.Random) -> Any:
        image, name = buffer.pop(rng.randrange(len(buffer)))
        return self.transform(image), name


def stream(root: str, workers: int) -> Any:
    """Return a loader over a stream."""
    return DataLoader(Shuffled(root), batch_size=BATCH, num_workers=workers)
