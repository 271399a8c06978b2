# SPDX-License-Identifier: Apache-2.0
"""Training scripts as users write them, importable by spawned workers."""

from __future__ import annotations

import random
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import tests.takeover.declared  # noqa: F401 - before torchvision, in spawned workers too

import torchvision.datasets as datasets  # isort: skip
import torchvision.transforms as transforms  # isort: skip


class Folder(datasets.ImageFolder):
    """Folder of images, as a class of the script."""


def checked(x: Any) -> Any:
    """Return a tensor whose class a script checks in its own way."""
    if type(x) is not torch.Tensor:
        raise TypeError(f"expected a tensor, got {x.__class__}")
    return x


def classification(traindir: str, workers: int, size: int = 64, **options: Any) -> Any:
    """Return the loader of the usual ImageNet script."""
    normalize = transforms.Normalize(mean=[0.485, 0.456, 0.406], std=[0.229, 0.224, 0.225])
    train_dataset = Folder(
        traindir,
        transforms.Compose(
            [
                transforms.RandomResizedCrop(size),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                normalize,
                checked,
            ]
        ),
    )
    return torch.utils.data.DataLoader(train_dataset, batch_size=4, shuffle=True, num_workers=workers, **options)


def run(loader: Any, seed: int = 7, epochs: int = 1) -> list[Any]:
    """Return all batches of some epochs, from a seed."""
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    return [batch for _ in range(epochs) for batch in loader]


def release(error: BaseException) -> None:
    """Release the loader in the frames of an error, so that its workers end.

    torch's exceptions of workers are in a reference cycle. If a garbage collection ends the loader, its queues are
    closed before it asks the workers to end, and it waits five seconds for each of them.
    """
    traceback.clear_frames(error.__traceback__)


class Tolerant(torch.utils.data.Dataset[Any]):
    """Data set that takes another file when one cannot be read."""

    def __init__(self, root: Path) -> None:
        self.files = sorted(root.rglob("*.jpg"))
        self.transform = transforms.Compose(
            [transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
        )

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Any, str]:
        try:
            with open(self.files[index], "rb") as file:
                image = Image.open(file).convert("RGB")
            return self.transform(image), self.files[index].name
        except OSError:
            return self[int(torch.randint(len(self), ()))]


class Views(torch.utils.data.Dataset[Any]):
    """Several random views of every file, as in self-supervised training."""

    def __init__(self, root: Path, views: int = 3) -> None:
        self.files = sorted(root.rglob("*.jpg"))
        self.views = views
        self.transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(32, scale=(0.2, 1.0)),
                transforms.RandomApply([transforms.ColorJitter(0.4, 0.4, 0.4)], p=0.8),
                transforms.RandomGrayscale(p=0.2),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize([0.5] * 3, [0.25] * 3),
            ]
        )

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[list[Any], int]:
        image = Image.open(self.files[index]).convert("RGB")
        return [self.transform(image) for _ in range(self.views)], index


def second_generation(traindir: str, workers: int, backend: str = "pil") -> Any:
    """Return a loader with the usual presets of transforms v2: Pillow images, or tensors from the start."""
    from torchvision.transforms import v2

    first = [v2.ToImage()] if backend == "tensor" else []
    last = [] if backend == "tensor" else [v2.PILToTensor()]
    transform = v2.Compose(
        [
            *first,
            v2.RandomResizedCrop(48, antialias=True),
            v2.RandomHorizontalFlip(0.5),
            v2.TrivialAugmentWide(),
            *last,
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]),
            v2.RandomErasing(0.5),
            v2.ToPureTensor(),
        ]
    )
    dataset = Folder(traindir, transform)
    return torch.utils.data.DataLoader(dataset, batch_size=4, shuffle=True, num_workers=workers)


def erasing(traindir: str, workers: int) -> Any:
    """Return the loader of a script that erases random windows and shifts colours."""
    transform = transforms.Compose(
        [
            transforms.Resize(50),
            transforms.CenterCrop(40),
            transforms.ColorJitter(0.4, 0.4, 0.4, 0.1),
            transforms.RandomEqualize(),
            transforms.RandomAutocontrast(),
            transforms.RandomAdjustSharpness(2.0),
            transforms.ToTensor(),
            transforms.Normalize([0.5] * 3, [0.25] * 3),
            transforms.RandomErasing(p=0.7, value="random"),
        ]
    )
    return torch.utils.data.DataLoader(Folder(traindir, transform), batch_size=4, shuffle=True, num_workers=workers)


class Stream(torch.utils.data.IterableDataset[Any]):
    """Stream of files, divided over the workers."""

    def __init__(self, root: Path) -> None:
        self.files = sorted(root.rglob("*.jpg"))
        self.transform = transforms.Compose(
            [transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(), transforms.ToTensor()]
        )

    def __iter__(self) -> Any:
        info = torch.utils.data.get_worker_info()
        first, step = (info.id, info.num_workers) if info is not None else (0, 1)
        for at, file in list(enumerate(self.files))[first::step]:
            yield self.transform(Image.open(file).convert("RGB")), at


class WorkerNames(Tolerant):
    """Data set whose label names the worker that reads an unreadable file."""

    def __getitem__(self, index: int) -> tuple[Any, str]:
        try:
            with open(self.files[index], "rb") as file:
                return self.transform(Image.open(file).convert("RGB")), ""
        except OSError:
            info = torch.utils.data.get_worker_info()
            worker = "main" if info is None else f"{info.id} of {info.num_workers}, {info.seed}, {len(info.dataset)}"
            return torch.zeros(3, 32, 32), f"{worker}, {torch.get_num_threads()}"


class Slow(torch.utils.data.Dataset[Any]):
    """Data set whose first two samples are fast; the others wait for the file ``rest``."""

    def __init__(self, rest: Path) -> None:
        self.rest = rest

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> int:
        if index > 1:
            while not self.rest.exists():
                time.sleep(0.01)
        return index
