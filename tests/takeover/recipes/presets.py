# SPDX-License-Identifier: Apache-2.0
"""Presets of torchvision's detection and segmentation references with transforms v2: images with their targets.

The samples have the form of COCO's: boxes, masks, key points and labels beside an image.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader

import tests.takeover.declared  # noqa: F401

from torchvision import tv_tensors  # isort: skip
from torchvision.transforms import v2  # isort: skip
from torchvision.transforms.v2 import functional as F  # isort: skip

POLICIES = ("hflip", "lsj", "multiscale", "ssd", "ssdlite")
BACKENDS = ("pil", "tensor", "tv_tensor")
MEAN = (123.0, 117.0, 104.0)
_FIRST: dict[str, list[Any]] = {"pil": [], "tensor": [v2.PILToTensor()], "tv_tensor": [v2.ToImage()]}


def detection_steps(policy: str, backend: str, size: int = 1024) -> list[Any]:
    """Return the augmentation of a policy: SSD, SSDLite, or one of the three of Faster R-CNN."""
    fill: Any = collections.defaultdict(lambda: MEAN, {tv_tensors.Mask: 0})
    if policy == "lsj":
        window = v2.RandomCrop((size, size), pad_if_needed=True, fill={tv_tensors.Mask: 0, "others": 124})
        steps = [v2.ScaleJitter(target_size=(size, size), antialias=True), window]
    elif policy == "multiscale":
        sides = range(size * 15 // 32, size * 25 // 32 + 1, size // 32)
        steps = [v2.RandomShortestSize(min_size=list(sides), max_size=size * 4 // 3)]
    elif policy == "ssd":
        steps = [v2.RandomPhotometricDistort(), v2.RandomZoomOut(fill=fill), v2.RandomIoUCrop()]
    else:
        steps = [v2.RandomIoUCrop()] if policy == "ssdlite" else []
    return [*_FIRST[backend], *steps, v2.RandomHorizontalFlip(0.5)]


def detection_preset(policy: str, backend: str, size: int = 1024) -> Any:
    """Return the whole preset."""
    last = [v2.ToImage()] if backend == "pil" else []
    last += [
        v2.ToDtype(torch.float, scale=True),
        v2.ConvertBoundingBoxFormat(tv_tensors.BoundingBoxFormat.XYXY),
        v2.SanitizeBoundingBoxes(),
        v2.ToPureTensor(),
    ]
    return v2.Compose([*detection_steps(policy, backend, size), *last])


class PadToSize(v2.Transform):  # type: ignore[misc]
    """Transform of a script: pad on the right and below where a side is smaller."""

    def __init__(self, size: int, fill: Any) -> None:
        super().__init__()
        self.size = size
        self.fill = v2._utils._setup_fill_arg(fill)

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Return the padding."""
        height, width = v2._utils.query_size(flat_inputs)
        return {"padding": [0, 0, max(0, self.size - width), max(0, self.size - height)]}

    _get_params = make_params  # the name in older releases

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Pad one of the inputs."""
        if not any(params["padding"]):
            return inpt
        fill = v2._utils._get_fill(self.fill, type(inpt))
        return self._call_kernel(F.pad, inpt, padding=params["padding"], fill=fill)

    _transform = transform


def segmentation_preset(backend: str, base: int = 520, crop: int = 480) -> Any:
    """Return the preset of the segmentation references."""
    kind = tv_tensors.Image if backend == "tv_tensor" else torch.Tensor
    steps = [
        *_FIRST[backend],
        v2.RandomResize(min_size=base // 2, max_size=2 * base),
        v2.RandomHorizontalFlip(0.5),
        PadToSize(crop, {tv_tensors.Mask: 255, "others": 0}),
        v2.RandomCrop(crop),
        *([v2.PILToTensor()] if backend == "pil" else []),
        v2.ToDtype({kind: torch.float32, tv_tensors.Mask: torch.int64, "others": None}, scale=True),
        v2.Normalize(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225)),
        v2.ToPureTensor(),
    ]
    return v2.Compose(steps)


class Coco(torch.utils.data.Dataset[Any]):
    """Images with annotations that are drawn from the image's index.

    Args:
        root: folder of the images.
        transform: called with an image and its target.
        parts: what the target has beside boxes and labels: "masks", "keypoints", "video".
        box_format: format of the boxes.
    """

    def __init__(self, root: str, transform: Any, parts: Sequence[str] = (), box_format: str = "XYXY") -> None:
        self.files = sorted(p for p in Path(root).rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
        self.transform = transform
        self.parts = parts
        self.box_format = box_format

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.files[index]).convert("RGB")
        width, height = image.size
        rng = np.random.default_rng(index)
        count = int(rng.integers(1, 7))
        corners = np.sort(rng.random((count, 2, 2)), axis=1) * (width, height)
        whole: Any = {"canvas_size": (height, width)}
        boxes = tv_tensors.BoundingBoxes(corners.reshape(count, 4).astype(np.float32), format="XYXY", **whole)
        target = {
            "image_id": index,
            "boxes": F.convert_bounding_box_format(boxes, new_format=tv_tensors.BoundingBoxFormat[self.box_format]),
            "labels": torch.from_numpy(rng.integers(1, 91, count)),
        }
        if "masks" in self.parts:
            masks = np.zeros((count, height, width), np.uint8)
            for mask, ((x0, y0), (x1, y1)) in zip(masks, corners.astype(int), strict=True):
                mask[y0 : y1 + 1, x0 : x1 + 1] = 1
            target["masks"] = tv_tensors.Mask(torch.from_numpy(masks))
        if "keypoints" in self.parts and hasattr(tv_tensors, "KeyPoints"):
            points = (rng.random((count, 5, 2)) * (width, height)).astype(np.float32)
            target["keypoints"] = tv_tensors.KeyPoints(torch.from_numpy(points), **whole)
        if "video" in self.parts:
            target["video"] = tv_tensors.Video(torch.from_numpy(rng.integers(0, 256, (2, 3, height, width), np.uint8)))
        return self.transform(image, target)


class Classes(Coco):
    """Images with a mask of classes."""

    def __getitem__(self, index: int) -> Any:
        image = Image.open(self.files[index]).convert("RGB")
        width, height = image.size
        rng = np.random.default_rng(index)
        mask = np.zeros((height, width), np.uint8)
        for _ in range(5):
            (x0, x1), (y0, y1) = np.sort(rng.integers(0, width, 2)), np.sort(rng.integers(0, height, 2))
            mask[y0:y1, x0:x1] = rng.integers(1, 21)
        return self.transform(image, tv_tensors.Mask(torch.from_numpy(mask)))


def listed(batch: list[Any]) -> Any:
    """Collate samples of different sizes: a tuple of images, and one of targets."""
    return tuple(zip(*batch, strict=True))


def detection(root: str, workers: int, policy: str, backend: str, size: int = 1024, **about: Any) -> Any:
    """Return the training loader of a detector."""
    dataset = Coco(root, detection_preset(policy, backend, size), **about)
    return DataLoader(dataset, batch_size=4, shuffle=True, num_workers=workers, collate_fn=listed)


def segmentation(root: str, workers: int, backend: str, base: int = 520, crop: int = 480) -> Any:
    """Return the training loader of a segmentation network."""
    dataset = Classes(root, segmentation_preset(backend, base, crop))
    return DataLoader(dataset, batch_size=4, shuffle=True, num_workers=workers, drop_last=True)
