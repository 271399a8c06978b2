# SPDX-License-Identifier: Apache-2.0
"""Settings that transforms v2 look up by class find a lazy object's under the class that it stands for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torchvision import tv_tensors
from torchvision.transforms import v2

import stoker.torchvision
from tests.takeover.conftest import exactly

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
    def made() -> Any:
        torch.manual_seed(4)
        return CASES[name](Image.open(photo).convert("RGB"))

    expected = made()
    with stoker.torchvision.enabled():
        ours = made()
        assert ours.dtype == expected.dtype if isinstance(ours, torch.Tensor) else ours.mode == expected.mode
        exactly(expected, ours.clone() if isinstance(ours, torch.Tensor) else ours)


def test_the_transform_keeps_its_own(photo: Path, taken_over: None) -> None:
    transform = v2.ToDtype({tv_tensors.Image: torch.float32, "others": None}, scale=True)
    transform(v2.functional.to_image(Image.open(photo).convert("RGB")))
    assert list(transform.dtype) == [tv_tensors.Image, "others"]
