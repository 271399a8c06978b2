# SPDX-License-Identifier: Apache-2.0
"""Detection and segmentation in the shape of torchvision's references: boxes and masks beside the image."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader

import tests.takeover.declared  # noqa: F401

import torchvision.transforms as transforms  # isort: skip
import torchvision.transforms.functional as F  # isort: skip
from torchvision import tv_tensors  # isort: skip
from torchvision.transforms import v2  # isort: skip
from torchvision.transforms.v2 import functional as F2  # isort: skip


def _files(root: str) -> list[Path]:
    return sorted(p for p in Path(root).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))


class Boxes(torch.utils.data.Dataset[Any]):
    """Images with boxes that are drawn from the image's index."""

    def __init__(self, root: str, transform: Any, wrapped: bool) -> None:
        self.files = _files(root)
        self.transform = transform
        self.wrapped = wrapped

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.files[index]).convert("RGB")
        width, height = image.size
        rng = np.random.default_rng(index)
        corners = np.sort(rng.random((4, 2, 2)), axis=1) * (width, height)
        boxes: Any = torch.from_numpy(corners.reshape(4, 4).astype(np.float32))
        if self.wrapped:
            boxes = tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(height, width))
        target = {"boxes": boxes, "labels": torch.from_numpy(rng.integers(1, 9, 4)), "image_id": index}
        return self.transform(image, target)


def tuples(batch: list[Any]) -> Any:
    """Collate like the references: images differ in size."""
    return tuple(zip(*batch, strict=True))


def detection(root: str, workers: int, backend: str = "pil", policy: str = "ssd") -> Any:
    """Return a detection loader with presets of transforms v2."""
    steps: list[Any] = []
    if backend == "tensor":
        steps.append(v2.ToImage())
    if policy == "ssd":
        fill: Any = {Image.Image: MEAN, tv_tensors.Image: list(MEAN), "others": 0}
        steps += [v2.RandomPhotometricDistort(), v2.RandomZoomOut(fill=fill), v2.RandomIoUCrop()]
    else:
        steps += [v2.ScaleJitter(target_size=(256, 256), antialias=True), v2.RandomCrop((200, 200), pad_if_needed=True)]
    steps.append(v2.RandomHorizontalFlip(p=0.5))
    if backend == "pil":
        steps.append(v2.ToImage())
    steps += [v2.ToDtype(torch.float, scale=True), v2.SanitizeBoundingBoxes(), v2.ToPureTensor()]
    dataset = Boxes(root, v2.Compose(steps), wrapped=True)
    return DataLoader(dataset, batch_size=8, shuffle=True, num_workers=workers, collate_fn=tuples)


MEAN = (123, 117, 104)


class FirstGeneration:
    """Preset with torchvision's functions on image and boxes."""

    def __call__(self, image: Any, target: Any) -> Any:
        if torch.rand(1) < 0.5:
            image = F.hflip(image)
            width = image.size[0]
            target["boxes"][:, [0, 2]] = width - target["boxes"][:, [2, 0]]
        return F.convert_image_dtype(F.pil_to_tensor(image), torch.float), target


def detection_v1(root: str, workers: int) -> Any:
    """Return a loader with the references' simplest preset: flips."""
    dataset = Boxes(root, FirstGeneration(), wrapped=False)
    return DataLoader(dataset, batch_size=8, shuffle=True, num_workers=workers, collate_fn=tuples)


class Masks(torch.utils.data.Dataset[Any]):
    """Images, each with a mask of classes in a PNG file."""

    def __init__(self, root: str, masks: str, transform: Any) -> None:
        self.files = _files(root)
        self.masks = Path(masks)
        self.transform = transform

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.files[index]).convert("RGB")
        return self.transform(image, Image.open(self.masks / f"{index}.png"))


def write_masks(root: str, masks: str) -> None:
    """Write a mask for every file."""
    Path(masks).mkdir(exist_ok=True)
    for at, file in enumerate(_files(root)):
        with Image.open(file) as image:
            width, height = image.size
        small = np.random.default_rng(at).integers(0, 21, (6, 8), np.uint8)
        mask = Image.fromarray(small).resize((width, height), Image.Resampling.NEAREST)
        mask.putpalette([7 * i % 256 for i in range(768)])
        mask.save(Path(masks) / f"{at}.png")


class SegmentationPreset:
    """Preset that resizes, flips and crops image and mask alike."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, image: Any, mask: Any) -> Any:
        size = random.randint(self.size // 2, self.size * 2)
        image = F.resize(image, size, antialias=True)
        mask = F.resize(mask, size, interpolation=F.InterpolationMode.NEAREST)
        if random.random() < 0.5:
            image, mask = F.hflip(image), F.hflip(mask)
        missing = self.size - min(image.size)
        if missing > 0:
            image = F.pad(image, [0, 0, max(0, self.size - image.size[0]), max(0, self.size - image.size[1])], fill=0)
            mask = F.pad(mask, [0, 0, max(0, self.size - mask.size[0]), max(0, self.size - mask.size[1])], fill=255)
        window = transforms.RandomCrop.get_params(image, (self.size, self.size))
        image, mask = F.crop(image, *window), F.crop(mask, *window)
        image = F.normalize(F.convert_image_dtype(F.pil_to_tensor(image)), (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
        return image, torch.as_tensor(np.array(mask), dtype=torch.int64)


class SecondPreset:
    """The segmentation preset with transforms v2."""

    def __init__(self, size: int) -> None:
        self.transform = v2.Compose(
            [
                v2.RandomResize(min_size=size // 2, max_size=size * 2),
                v2.RandomHorizontalFlip(0.5),
                v2.RandomCrop((size, size), pad_if_needed=True, fill={tv_tensors.Mask: 255, "others": 0}),
                v2.ToImage(),
                v2.ToDtype({tv_tensors.Image: torch.float32, tv_tensors.Mask: torch.int64, "others": None}, scale=True),
                v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)),
                v2.ToPureTensor(),
            ]
        )

    def __call__(self, image: Any, mask: Any) -> Any:
        return self.transform(image, tv_tensors.Mask(F2.pil_to_tensor(mask)))


def padded(batch: list[Any]) -> Any:
    """Collate like the references: into one tensor of the largest size."""
    images, masks = zip(*batch, strict=True)
    return _together(images, 0), _together(masks, 255)


def _together(images: Any, fill: int) -> Any:
    size = tuple(max(sizes) for sizes in zip(*[image.shape for image in images], strict=True))
    batch = images[0].new(len(images), *size).fill_(fill)
    for image, room in zip(images, batch, strict=True):
        room[..., : image.shape[-2], : image.shape[-1]].copy_(image)
    return batch


def segmentation(root: str, workers: int, preset: Any = SegmentationPreset) -> Any:
    """Return the training loader of a segmentation network."""
    masks = f"{root.rstrip('/')}-masks"
    if not Path(masks).exists():
        write_masks(root, masks)
    dataset = Masks(root, masks, preset(160))
    return DataLoader(dataset, batch_size=8, shuffle=True, num_workers=workers, collate_fn=padded, drop_last=True)
