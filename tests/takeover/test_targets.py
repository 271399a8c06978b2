# SPDX-License-Identifier: Apache-2.0
"""Transforms v2 with boxes, masks and key points beside the image, and of whole batches, equal untouched ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms import v2

import stoker.torchvision
from stoker.frontends.torchvision.collation import batches
from stoker.frontends.torchvision.pillow.image import LazyImage
from stoker.frontends.torchvision.tensors.tensor import LazyTensor
from tests.takeover import trials
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily

MEAN = [123.0, 117.0, 104.0]
LAST = [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.ToPureTensor()]
# The presets of torchvision's references for detection and segmentation, by policy and backend.
PRESETS: dict[str, Callable[[], list[Any]]] = {
    "hflip": lambda: [v2.RandomHorizontalFlip(0.5)],
    "lsj": lambda: [
        v2.ScaleJitter(target_size=(96, 96), antialias=True),
        v2.RandomCrop(size=(64, 64), pad_if_needed=True),
        v2.RandomHorizontalFlip(0.5),
    ],
    "multiscale": lambda: [v2.RandomShortestSize(min_size=(48, 60, 72), max_size=100), v2.RandomHorizontalFlip(0.5)],
    "ssd": lambda: [
        v2.RandomPhotometricDistort(),
        v2.RandomZoomOut(fill=dict.fromkeys([tv_tensors.Image, Image.Image], (1, 2, 3)) | {"others": 0}),
        v2.RandomIoUCrop(),
        v2.RandomHorizontalFlip(0.5),
    ],
    "ssdlite": lambda: [v2.RandomIoUCrop(), v2.RandomHorizontalFlip(0.5)],
    "segmentation": lambda: [
        v2.RandomResize(min_size=40, max_size=90),
        v2.RandomHorizontalFlip(0.5),
        v2.RandomCrop(size=(48, 48), pad_if_needed=True, fill={tv_tensors.Mask: 255, "others": 0}),
    ],
    "affine": lambda: [v2.RandomAffine(20, (0.1, 0.1), (0.8, 1.2), 9), v2.RandomPerspective(p=1.0)],
    "fixed": lambda: [v2.FixedSizeCrop((70, 140)) if hasattr(v2, "FixedSizeCrop") else v2.Resize((33, 44))],
}


def sample(path: Path, backend: str) -> Any:
    image = Image.open(path).convert("RGB")
    target = {
        "boxes": tv_tensors.BoundingBoxes(
            torch.tensor([[5, 6, 60, 70], [20, 10, 110, 80]]), format="XYXY", canvas_size=(90, 120)
        ),
        "masks": tv_tensors.Mask((torch.arange(2 * 90 * 120).view(2, 90, 120) // 97 % 2).to(torch.uint8)),
        "labels": torch.tensor([3, 4]),
    }
    if hasattr(tv_tensors, "KeyPoints"):
        target["points"] = tv_tensors.KeyPoints(torch.tensor([[[5.0, 6.0], [50.0, 60.0]]]), canvas_size=(90, 120))
    return (v2.functional.to_image(image) if backend == "tensor" else image), target


def seeded(transform: Any, path: Path, backend: str, seed: int) -> Any:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    return transform(*sample(path, backend))


@pytest.mark.parametrize("backend", ["pil", "tensor"])
@pytest.mark.parametrize("name", PRESETS)
def test_an_image_with_its_targets(photo: Path, name: str, backend: str) -> None:
    transform = v2.Compose([*PRESETS[name](), *LAST])
    if name != "segmentation":
        transform = v2.Compose([*PRESETS[name](), v2.ClampBoundingBoxes(), v2.SanitizeBoundingBoxes(), *LAST])
    for seed in range(12):
        if name == "segmentation":

            def run(seed: int = seed) -> Any:
                torch.manual_seed(seed)
                image, target = sample(photo, backend)
                return transform(image, {"masks": target["masks"]})

        else:

            def run(seed: int = seed) -> Any:
                return seeded(transform, photo, backend, seed)

        expected, wanted = run()
        with lazily(), trials.watched() as known:
            image, target = run()
            assert (issubclass(type(image), LazyTensor) and image._materialized is None) or not all(known), (
                f"seed {seed}"
            )
            exactly(image, expected)
            target = batches.to_plain(target)  # as at the end of a fetch
        assert target.keys() == wanted.keys()
        for key, value in wanted.items():
            assert type(target[key]) is type(value)
            exactly(target[key], value)


@pytest.mark.parametrize("mix", [v2.MixUp(num_classes=5), v2.CutMix(num_classes=5)])
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_mixed(files: Path, mix: Any, workers: int) -> None:
    from torch.utils.data import DataLoader, default_collate
    from torchvision.datasets import ImageFolder

    transform = v2.Compose(
        [v2.ToImage(), v2.RandomResizedCrop(32, antialias=True), v2.ToDtype(torch.float32, scale=True)]
    )
    dataset = ImageFolder(str(files), transform)

    def batches(collate: Any) -> list[Any]:
        torch.manual_seed(5)
        loader = DataLoader(dataset, 4, num_workers=workers, collate_fn=collate)
        return [mix(*batch) if collate is None else batch for batch in loader]

    def collate(rows: Any) -> Any:
        return mix(*default_collate(rows))

    for function in (None, collate):
        expected = batches(function)
        with stoker.torchvision.enabled():
            ours = batches(function)
        for (x, label), (y, wanted) in zip(ours, expected, strict=True):
            exactly(x, y)
            exactly(label, wanted)


def test_types_are_looked_up_by_class(photo: Path) -> None:
    """torchvision looks up types and fills by the class of its input."""
    types = {tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64, "others": None}
    transforms = [
        v2.Compose([v2.ToImage(), v2.ToDtype(types, scale=True)]),
        v2.Compose([v2.PILToTensor(), v2.ToDtype({torch.Tensor: torch.float16, "others": None})]),
        v2.Compose([v2.Pad(3, fill={Image.Image: 9, "others": 0}), v2.PILToTensor()]),
        v2.Compose([v2.ToImage(), v2.Pad(3, fill={tv_tensors.Image: 9, "others": 0})]),
        v2.Compose([v2.ToImage(), v2.RandAugment(fill={tv_tensors.Image: 9, "others": 0})]),
    ]
    for transform in transforms:
        torch.manual_seed(1)
        expected = transform(sample(photo, "pil")[0])
        with lazily():
            torch.manual_seed(1)
            with trials.watched() as known:
                image = transform(sample(photo, "pil")[0])
            assert (issubclass(type(image), LazyTensor) and image._materialized is None) or not all(known)
            assert image.dtype == expected.dtype
            exactly(image, expected)


def test_exchanged_channels(photo: Path) -> None:
    transform = v2.RandomPhotometricDistort(p=1.0)
    for seed in range(6):
        for backend in ("pil", "tensor"):
            expected = seeded(transform, photo, backend, seed)[0]
            with lazily(), trials.watched() as known:
                image = seeded(transform, photo, backend, seed)[0]
                lazy = issubclass(type(image), LazyImage if backend == "pil" else LazyTensor)
                assert (lazy and getattr(image, "_materialized", None) is None) or not all(known)
                exactly(image, expected)
