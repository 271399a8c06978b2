# SPDX-License-Identifier: Apache-2.0
"""Images of arrays (data sets in memory, ``ToPILImage``): recorded unless they are small, with equal results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torchvision.datasets as datasets
import torchvision.transforms as transforms
from photographs import photograph
from PIL import Image, ImageDraw

import stoker.torchvision
from stoker.frontends.torchvision import counts
from stoker.frontends.torchvision.hooks import switch
from stoker.frontends.torchvision.pillow.image import DecodedImage, LazyImage
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily
from tests.takeover.scripts import run
from tests.takeover.test_script import equal


class InMemory(torch.utils.data.Dataset[Any]):
    """Arrays with labels, in the shape of torchvision's CIFAR and MNIST."""

    def __init__(self, size: int, channels: int, transform: Any) -> None:
        self.data = [photograph(i, size, size)[..., :channels].squeeze().copy() for i in range(20)]
        self.transform = transform

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        return self.transform(Image.fromarray(self.data[index])), index


def loader(size: int, channels: int, workers: int) -> Any:
    transform = transforms.Compose(
        [
            transforms.RandomCrop(size, padding=4),
            transforms.RandomHorizontalFlip(),
            transforms.ToTensor(),
            transforms.Normalize([0.5] * channels, [0.25] * channels),
        ]
    )
    return torch.utils.data.DataLoader(InMemory(size, channels, transform), 6, shuffle=True, num_workers=workers)


@pytest.mark.parametrize("workers", [0, 2, 8])
@pytest.mark.parametrize(("size", "channels"), [(96, 3), (80, 1), (32, 3), (28, 1)])
def test_data_sets_in_memory(size: int, channels: int, workers: int) -> None:
    untouched = run(loader(size, channels, workers))
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(loader(size, channels, workers)))
    total = counts.totals()
    large = size * size >= 4096
    assert total[counts.NATIVE] == (20 if large else 0) and total[counts.SMALL] == (0 if large else 20)


@pytest.mark.parametrize("workers", [0, 2])
def test_synthetic_data(workers: int) -> None:
    """torchvision's FakeData converts tensors to Pillow images."""

    def fake() -> Any:
        chain = transforms.Compose([transforms.RandomResizedCrop(50), transforms.ToTensor()])
        return torch.utils.data.DataLoader(datasets.FakeData(9, (3, 70, 90), 4, chain), 4, num_workers=workers)

    untouched = run(fake())
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(fake()))
    assert counts.totals()[counts.NATIVE] == 9


USES: dict[str, Callable[[Any, Any], Any]] = {
    "resized": lambda image, array: image.resize((31, 40)),
    "looked at": lambda image, array: Image.fromarray(np.array(image)[::-1]),
    "looked at, then resized": lambda image, array: (np.array(image), image.resize((31, 40)))[1],
    "drawn on": lambda image, array: (ImageDraw.Draw(image).line((0, 0, 50, 60), 200, 3), image.resize((31, 40)))[1],
    "drawn on after a step": lambda image, array: (
        image.resize((9, 9)),
        ImageDraw.Draw(image).line((0, 0, 50, 60), 200, 3),
        image.resize((31, 40)),
    )[2],
    "the array changes": lambda image, array: (array.__setitem__(slice(9, 30), 77), image.resize((31, 40)))[1],
    "the array changes between steps": lambda image, array: (
        image.resize((9, 9)),
        array.__setitem__(slice(9, 30), 77),
        image.resize((31, 40)),
    )[2],
    "put into another one": lambda image, array: (
        canvas := Image.new(image.mode, (120, 130), 9),
        canvas.paste(image, (5, 6)),
        canvas,
    )[2],
    "blended": lambda image, array: Image.blend(image, image.transpose(Image.Transpose.ROTATE_180), 0.3),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("shape", [(70, 90, 3), (70, 90), (70, 90, 4)])
def test_uses_of_arrays(shape: tuple[int, ...], use: str) -> None:
    def result() -> Any:
        array = np.random.default_rng(3).integers(0, 256, shape, np.uint8)
        return USES[use](Image.fromarray(array), array)

    expected = result()
    with lazily():
        ours = result()
        assert (ours.mode, ours.size, ours.info) == (expected.mode, expected.size, expected.info)
        exactly(ours, expected)


def test_later_steps_are_recorded_until_pixels_are_accessed(recording: None) -> None:
    image = Image.fromarray(photograph(1, 70, 90))
    assert type(image) is DecodedImage and not image.readonly
    first, second = image.resize((20, 20)), image.crop((1, 2, 60, 60))
    assert issubclass(type(first), LazyImage) and issubclass(type(second), LazyImage)
    assert first._node is not None and second._node is not None
    assert first._node.source is second._node.source, "both views have one source"
    image.putpixel((3, 3), (1, 2, 3))
    assert image._recorded_node() is None


@pytest.mark.parametrize(
    "array", [np.zeros((70, 90), np.float32), np.zeros((70, 90), np.uint16), np.zeros((9, 9, 3), np.uint8)]
)
def test_arrays_that_are_left_to_pillow(array: Any, recording: None) -> None:
    assert type(Image.fromarray(array)) is Image.Image


def test_pillow_s_function_is_restored() -> None:
    body = Image.fromarray.__code__
    with stoker.torchvision.enabled():
        assert Image.fromarray.__code__ is body, "no batch is fetched"
        with switch.fetching():
            assert Image.fromarray.__code__ is not body
        assert Image.fromarray.__code__ is body
