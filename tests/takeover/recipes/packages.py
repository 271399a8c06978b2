# SPDX-License-Identifier: Apache-2.0
"""Scripts that load through other packages: timm, Hugging Face datasets, albumentations, OpenCV, torchdata.

Each package is imported by the recipe that uses it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader

import tests.takeover.declared  # noqa: F401

import torchvision.datasets as datasets  # isort: skip
import torchvision.transforms as transforms  # isort: skip

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def timm(root: str, workers: int, prefetcher: bool = False, splits: int = 0, mixup: str = "") -> Any:
    """Return timm's loader: RandAugment, erasing, its own collation with prefetching, AugMix, MixUp and CutMix."""
    from timm.data import AugMixDataset, FastCollateMixup, create_dataset, create_loader

    dataset = create_dataset("", root)
    if splits:
        dataset = AugMixDataset(dataset, num_splits=splits)
    return create_loader(
        dataset,
        input_size=(3, 160, 160),
        batch_size=16,
        is_training=True,
        use_prefetcher=prefetcher,
        re_prob=0.25,
        re_mode="pixel",
        re_split=bool(splits),
        num_aug_splits=splits,
        color_jitter=0.4,
        # At strength 10, which 9 and its spread reach, timm's posterize keeps no bits, which Pillow 13 refuses.
        auto_augment="augmix-m3" if splits else "rand-m7-mstd0.5-inc1",
        interpolation="bilinear",
        collate_fn=FastCollateMixup(0.8, 1.0, mode=mixup, num_classes=4) if mixup else None,
        mean=MEAN,
        std=STD,
        num_workers=workers,
        pin_memory=False,
        device=torch.device("cpu"),
        persistent_workers=False,
    )


class Examples:
    """Transform of a batch of examples, like run_image_classification's."""

    def __init__(self) -> None:
        self.transform = transforms.Compose(
            [
                transforms.RandomResizedCrop(224),
                transforms.RandomHorizontalFlip(),
                transforms.ToTensor(),
                transforms.Normalize(mean=MEAN, std=STD),
            ]
        )

    def __call__(self, examples: Any) -> Any:
        examples["pixel_values"] = [self.transform(image.convert("RGB")) for image in examples["image"]]
        return examples


def _stacked(examples: Any) -> Any:
    pixel_values = torch.stack([example["pixel_values"] for example in examples])
    return {"pixel_values": pixel_values, "labels": torch.tensor([example["label"] for example in examples])}


def hugging_face(root: str, workers: int) -> Any:
    """Return a data set of the ``datasets`` package with ``set_transform``, which decodes images on access."""
    import datasets as hub

    files = sorted(str(p) for p in Path(root).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    table = hub.Dataset.from_dict({"image": files, "label": [i % 10 for i in range(len(files))]})
    table = table.cast_column("image", hub.Image())
    table.set_transform(Examples())
    return DataLoader(table, batch_size=16, shuffle=True, num_workers=workers, collate_fn=_stacked)


class Arrays(torch.utils.data.Dataset[Any]):
    """albumentations on ``np.array(image)``."""

    def __init__(self, root: str) -> None:
        import albumentations

        self.files = sorted(str(p) for p in Path(root).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
        self.transform = albumentations.Compose(
            [
                albumentations.RandomResizedCrop(size=(224, 224)),
                albumentations.HorizontalFlip(p=0.5),
                albumentations.Normalize(mean=MEAN, std=STD),
            ],
            seed=3,
        )

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        array = np.array(Image.open(self.files[index]).convert("RGB"))
        return torch.from_numpy(self.transform(image=array)["image"].transpose(2, 0, 1).copy()), index


def albumentations(root: str, workers: int) -> Any:
    """Return a loader whose images become arrays immediately."""
    return DataLoader(Arrays(root), batch_size=16, shuffle=True, num_workers=workers)


class Matrices(torch.utils.data.Dataset[Any]):
    """Data set that reads, resizes and flips with OpenCV."""

    def __init__(self, root: str) -> None:
        self.files = sorted(str(p) for p in Path(root).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        import cv2

        matrix = cv2.cvtColor(cv2.imread(self.files[index]), cv2.COLOR_BGR2RGB)
        matrix = cv2.resize(matrix, (224, 224), interpolation=cv2.INTER_LINEAR)
        if torch.rand(1) < 0.5:
            matrix = cv2.flip(matrix, 1)
        return transforms.functional.normalize(transforms.functional.to_tensor(matrix), MEAN, STD), index


def opencv(root: str, workers: int) -> Any:
    """Return a loader without Pillow."""
    return DataLoader(Matrices(root), batch_size=16, shuffle=True, num_workers=workers)


def stateful(root: str, workers: int) -> Any:
    """Return torchdata's loader over the ImageNet script's data set."""
    import warnings

    from torchdata.stateful_dataloader import StatefulDataLoader

    dataset = datasets.ImageFolder(root, Examples().transform)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's warning about a function that torchdata calls
        return StatefulDataLoader(dataset, batch_size=16, shuffle=True, num_workers=workers)
