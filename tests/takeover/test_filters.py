# SPDX-License-Identifier: Apache-2.0
"""Pillow's blurs: native code gives the same bits for every radius, and scripts with them stay recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageFilter

from stoker.frontends.torchvision import counts
from stoker.frontends.torchvision.ir import steps
from stoker.frontends.torchvision.ir.recipe import Node
from stoker.frontends.torchvision.materialize.eager import planar_pixels
from stoker.frontends.torchvision.pillow.image import LazyImage
from stoker.frontends.torchvision.reference.replay import replay
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily


def _blurred(array: Any, radii: tuple[float, float], passes: int, bell: bool) -> Any:
    height, width, channels = array.shape
    node = Node.pixels(array.reshape(-1), (width, height), channels)
    node = node.then(steps.Blur(*radii, passes, int(bell)))
    pixels = planar_pixels(node)
    expected = np.asarray(replay(node))
    return pixels.transpose(1, 2, 0).reshape(expected.shape), expected


def test_blurs_have_the_bits_of_pillow(isa: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(400):
        shape = (int(rng.integers(1, 50)), int(rng.integers(1, 50)), int(rng.choice([1, 3])))
        array = rng.integers(0, 256, shape, np.uint8)
        radii = [float(r) for r in rng.choice([0.2, 1.5, 4, 60]) * rng.random(2)]
        if rng.random() < 0.2:
            radii[int(rng.integers(2))] = 0.0
        bell = bool(rng.random() < 0.6)
        pixels, expected = _blurred(array, (radii[0], radii[1]), 3 if bell else 1, bell)
        assert np.array_equal(pixels, expected), (shape, radii, bell)


@pytest.mark.parametrize("shape", [(1, 1500, 3), (700, 2, 1), (5, 5, 3)])
def test_blurs_of_extreme_shapes(shape: tuple[int, int, int], isa: str) -> None:
    """Rows are longer than a block of sums, and windows larger than the image."""
    array = np.random.default_rng(6).integers(0, 256, shape, np.uint8)
    for radius in (0.01, 0.5, 1.0, 2.99, 3.0, 3.5, 4.0, 900.0):
        for bell in (False, True):
            pixels, expected = _blurred(array, (radius, radius), 3 if bell else 1, bell)
            assert np.array_equal(pixels, expected), (shape, radius, bell)


@pytest.mark.parametrize("numbers", [(-1.0, 1.0, 1, 0), (1.0, float("nan"), 3, 1), (1e30, 1.0, 1, 0), (1.0, 1.0, 0, 0)])
def test_a_radius_that_is_none_is_refused(numbers: tuple[Any, ...]) -> None:
    node = Node.pixels(np.zeros(12, np.uint8), (2, 2), 3).then(steps.Blur(*numbers))
    with pytest.raises(RuntimeError, match="could not be made: a blur"):
        planar_pixels(node)


BLURS = {
    "gaussian": ImageFilter.GaussianBlur(1.7),
    "of a class": ImageFilter.GaussianBlur,
    "across alone": ImageFilter.GaussianBlur((2.5, 0)),
    "down alone": ImageFilter.BoxBlur((0, 1.25)),
    "box": ImageFilter.BoxBlur(3.3),
    "none": ImageFilter.BoxBlur(0),
    "of a negative radius": ImageFilter.GaussianBlur(-2),
}


@pytest.mark.parametrize("name", BLURS)
def test_blurs_are_recorded(photo: Path, name: str) -> None:
    counts.reset()
    for mode in ("RGB", "L"):
        for turned in (False, True):

            def blur(mode: str = mode, turned: bool = turned) -> Image.Image:
                image = Image.open(photo).convert(mode).crop((3, 5, 110, 80))
                if turned:
                    image = image.transpose(Image.Transpose.ROTATE_90)
                return image.filter(BLURS[name]).transpose(Image.Transpose.FLIP_LEFT_RIGHT)

            expected = blur()
            with lazily():
                ours = blur()
            assert issubclass(type(ours), LazyImage) and ours._node is not None
            assert (ours.mode, ours.size, ours.info) == (expected.mode, expected.size, expected.info)
            exactly(ours, expected)
    assert not counts.totals()[counts.FILTER]


class Own(ImageFilter.GaussianBlur):
    """Blur of the script."""

    def filter(self, image: Any) -> Any:
        return super().filter(image).copy()


OTHERS = [
    ImageFilter.SHARPEN,
    ImageFilter.MedianFilter(3),
    ImageFilter.UnsharpMask(2),
    Own(1),
    ImageFilter.GaussianBlur(1e5),
]


@pytest.mark.parametrize("other", OTHERS, ids=lambda f: f.name)
def test_other_filters_are_pillow_s_and_counted(photo: Path, recording: None, other: Any) -> None:
    expected = Image.open(photo)
    expected.load()[0, 0]  # materializes the image, so that later steps are not recorded
    exactly(Image.open(photo).filter(other), expected.filter(other))
    assert counts.totals()[counts.FILTER] == 1


@pytest.mark.parametrize("wrong", [3, ImageFilter.GaussianBlur("wide"), ImageFilter.GaussianBlur((1, 2, 3))])
def test_other_objects_are_refused_as_by_pillow(photo: Path, recording: None, wrong: Any) -> None:
    plain = Image.new("RGB", (9, 9))
    with pytest.raises((TypeError, ValueError)) as expected:
        plain.filter(wrong)
    with pytest.raises(expected.type) as ours:
        Image.open(photo).filter(wrong)
    assert str(ours.value) == str(expected.value)
