# SPDX-License-Identifier: Apache-2.0
"""Transforms v2 that look up settings by class find those of the class that a lazy object represents."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torchvision import transforms, tv_tensors
from torchvision.transforms import functional as first
from torchvision.transforms import v2

from stoker.frontends.torchvision.tensors.lazy_base import become_plain
from stoker.frontends.torchvision.tensors.tensor import LazyTensor
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily

FILL: Any = {Image.Image: (9, 8, 7), tv_tensors.Image: [1, 2, 3], torch.Tensor: [4, 5, 6], "others": 0}
IMAGES: Any = {tv_tensors.Image: torch.float64, "others": None}
TENSORS: Any = {torch.Tensor: torch.float16, "others": None}
CASES: dict[str, Callable[[Any], Any]] = {
    "fill, Pillow": v2.Pad(5, fill=FILL),
    "fill, image": v2.Compose([v2.ToImage(), v2.Pad(5, fill=FILL)]),
    "fill, tensor": v2.Compose([v2.PILToTensor(), v2.Pad(5, fill=FILL)]),
    "fill, an automatic augmentation": v2.Compose([v2.ToImage(), v2.RandAugment(fill=FILL)]),
    "types, image": v2.Compose([v2.ToImage(), v2.ToDtype(IMAGES, scale=True)]),
    "types, tensor": v2.Compose([v2.PILToTensor(), v2.ToDtype(TENSORS, scale=True)]),
}


@pytest.mark.parametrize("name", CASES)
def test_by_class(photo: Path, name: str) -> None:
    def result() -> Any:
        torch.manual_seed(4)
        return CASES[name](Image.open(photo).convert("RGB"))

    expected = result()
    with lazily():
        ours = result()
        assert ours.dtype == expected.dtype if isinstance(ours, torch.Tensor) else ours.mode == expected.mode
        exactly(expected, ours.clone() if isinstance(ours, torch.Tensor) else ours)


def test_the_transforms_own_settings_are_unchanged(photo: Path, recording: None) -> None:
    transform = v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True)
    transform(v2.functional.to_image(Image.open(photo).convert("RGB")))
    assert list(transform.dtype) == [tv_tensors.Image, "others"]


STEPS: dict[str, Callable[[Any], Any]] = {
    "crop": lambda x: first.crop(x, 3, 4, 60, 50),
    "crop, second": lambda x: v2.functional.crop(x, 3, 4, 60, 50),
    "window": lambda x: x[..., 3:60, 4:70],
    "flip": first.hflip,
    "flip, second": v2.functional.horizontal_flip,
    "pad": lambda x: first.pad(x, [3, 4]),
    "resize": lambda x: first.resize(x, [40, 50], antialias=True),
    "resize, second": lambda x: v2.functional.resize(x, [40, 50]),
    "rotate": lambda x: first.rotate(x, 30.0),
    "brightness": lambda x: first.adjust_brightness(x, 1.2),
    "contrast": lambda x: first.adjust_contrast(x, 1.2),
    "hue": lambda x: first.adjust_hue(x, 0.1),
    "hue of one channel": lambda x: first.adjust_hue(x, 0.1),
    "gray": lambda x: first.rgb_to_grayscale(x, 3),
    "blur": lambda x: first.gaussian_blur(x, [5, 5], [1.0, 1.0]),
    "equalize": first.equalize,
    "invert": first.invert,
    "erase": lambda x: first.erase(x, 3, 4, 10, 10, torch.zeros(1, 1, 1, dtype=torch.uint8)),
    "normalize": lambda x: first.normalize(x.float(), [0.5], [0.5]),
    "times": lambda x: x * 2,
    "in place": lambda x: x.mul_(2),
    "float": lambda x: x.float(),
    "to": lambda x: x.to(torch.uint8),
    "to another": lambda x: x.to(torch.float32),
    "clone": lambda x: x.clone(),
    "contiguous": lambda x: x.contiguous(),
    "cpu": lambda x: x.cpu(),
    "reshape": lambda x: x.reshape(1, *x.shape),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "stack": lambda x: torch.stack([x, x]),
    "a sum": lambda x: x.sum(),
    "a shape": lambda x: x.shape,
}


@pytest.mark.parametrize("kind", ["Tensor", "TVTensor"])
@pytest.mark.parametrize("name", STEPS)
def test_functions_return_the_same_classes(photo: Path, name: str, kind: str) -> None:
    """Most functions turn torchvision's image tensors into tensors; lazy ones become the same classes."""
    mode = "L" if "one channel" in name else "RGB"

    def result_of_function() -> Any:
        image = v2.functional.to_image(Image.open(photo).convert(mode))
        with tv_tensors.set_return_type(kind):
            return issubclass(type(image), LazyTensor), STEPS[name](image)

    _, expected = result_of_function()
    with lazily():
        was_lazy, ours = result_of_function()
        assert was_lazy
        assert isinstance(ours, tv_tensors.Image) == isinstance(expected, tv_tensors.Image)
        if issubclass(type(ours), LazyTensor):
            ours = become_plain(ours)
        assert type(ours) is type(expected)
        exactly(expected, ours)


def test_normalizing_in_place_is_visible_in_views_of_the_memory(photo: Path) -> None:
    def normalized_views() -> Any:
        image = transforms.ToTensor()(Image.open(photo).convert("RGB"))
        window = image[:, 20:60, 30:70]
        first.normalize(window, [0.5] * 3, [0.25] * 3, inplace=True)
        return image, window

    expected = normalized_views()
    with lazily():
        for a, b in zip(expected, normalized_views(), strict=True):
            exactly(a, b.clone())
