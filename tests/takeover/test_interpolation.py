# SPDX-License-Identifier: Apache-2.0
"""How torch adds up floats where it resizes and filters them: the plain twins have its bits, and see other orders."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import torchvision.transforms as v1
from PIL import Image
from torchvision.transforms.v2 import functional as F

import stoker.torchvision
from stoker.frontends.torchvision import recipe, resizes, sampling, sums
from stoker.frontends.torchvision.early import pixels_of
from stoker.frontends.torchvision.interpolation import (
    APART,
    CUBIC,
    LINEAR,
    ROUNDED,
    SMOOTH,
    TOGETHER,
    interpolated,
    is_torchs,
)
from stoker.frontends.torchvision.recipe import Node
from stoker.frontends.torchvision.tensor import LazyTensor
from tests.takeover.conftest import exactly

MODES = {LINEAR: "bilinear", CUBIC: "bicubic"}


def random_sizes(seed: int) -> tuple[tuple[int, int], tuple[int, int]]:
    rng = np.random.default_rng(seed)
    (height, width), (h, w) = rng.integers(1, 90, 2), rng.integers(1, 120, 2)
    return (int(height), int(width)), (int(h), int(w))


def built(kind: int) -> tuple[int, int]:
    """The way of axis by axis that torch was built with, and the one of other builds."""
    way = resizes._way(kind, False, 1, (200, 200))
    return (APART, ROUNDED) if way == APART else (ROUNDED, APART)


@pytest.mark.parametrize("kind", MODES)
@pytest.mark.parametrize("name", ["smooth", "axis by axis", "together"])
def test_the_twin_is_torch(kind: int, name: str) -> None:
    if kind == CUBIC and name == "together":
        return
    way = {"smooth": SMOOTH, "axis by axis": built(kind)[0], "together": TOGETHER}[name]
    for seed in range(25):
        given, (h, w) = random_sizes(seed)
        if (way == SMOOTH and w == 1) or (way == TOGETHER and h + w > 128):
            continue  # torch has another way for these
        h += 130 if name == "axis by axis" and kind == LINEAR else 0
        channels = 3 if way == TOGETHER else 1
        image = np.random.default_rng(seed).integers(0, 256, (channels, *given)).astype(np.float32)
        expected = torch.nn.functional.interpolate(
            torch.from_numpy(image)[None], size=[h, w], mode=MODES[kind], antialias=way == SMOOTH
        )[0].numpy()
        for plane, wanted in zip(image, expected, strict=True):
            assert np.array_equal(interpolated(plane, kind, way, (h, w)), wanted), (given, (h, w))


def test_another_order_is_seen() -> None:
    assert is_torchs(LINEAR, TOGETHER, 3, resizes._SMALL_TRIALS)
    assert not is_torchs(LINEAR, APART, 3, resizes._SMALL_TRIALS)
    assert not is_torchs(LINEAR, TOGETHER, 1, resizes._LARGE_TRIALS)
    for kind in MODES:
        way, other = built(kind)
        assert is_torchs(kind, way, 1, resizes._LARGE_TRIALS)
        assert not is_torchs(kind, other, 1, resizes._LARGE_TRIALS)
    assert sums.filters_in_order(3, (3, 3), (47, 37))
    assert sums.filters_in_order(1, (3, 3), (160, 140))
    assert not sums.filters_in_order(1, (3, 3), (47, 37)), "small products of matrices are added up otherwise"


@pytest.mark.parametrize("kind", MODES)
def test_native_code_has_the_bits_of_every_build(kind: int, isa: str) -> None:
    """Of ways that the torch at hand does not go as well: the twin's, once they are rounded."""
    ways = [way for way in (SMOOTH, APART, TOGETHER, ROUNDED) if kind == LINEAR or way != TOGETHER]
    twins = {}
    for seed, (given, size) in enumerate([((60, 56), (240, 384)), *(random_sizes(seed) for seed in range(1, 12))]):
        image = np.random.default_rng(seed).integers(0, 256, given, np.uint8)
        node = Node.pixels(image.reshape(-1), (given[1], given[0]), 1)
        for way in ways:
            twin = np.clip(np.rint(interpolated(image.astype(np.float32), kind, way, size)), 0, 255)
            made = pixels_of(node.then(recipe.TORCH_RESIZE_FLOATS, (*size, kind, way), (size[1], size[0])))
            assert made is not None and np.array_equal(made[0], twin.astype(np.uint8)), (way, given, size)
            twins[seed, way] = twin
    assert not np.array_equal(twins[0, APART], twins[0, ROUNDED]), "bytes tell them apart, if they are many"


@pytest.mark.parametrize("channels", [1, 3])
def test_what_is_tried_is_recorded(channels: int) -> None:
    for kind in MODES:
        for antialias in (False, True):
            for sides in ((40, 50), (200, 210)):
                assert resizes._way(kind, antialias, channels, sides) is not None


@pytest.mark.leaks("torch keeps its threads")
def test_threads_are_told_apart() -> None:
    """With one thread torch has a way of its own for three channels."""
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 1):
            torch.set_num_threads(threads)
            way = resizes._way(LINEAR, False, 3, (170, 190))
            assert way is not None
            image = np.random.default_rng(2).integers(0, 256, (3, 120, 150)).astype(np.float32)
            expected = torch.nn.functional.interpolate(torch.from_numpy(image)[None], size=[170, 190], mode="bilinear")[
                0
            ]
            made = np.stack([interpolated(plane, LINEAR, way, (170, 190)) for plane in image])
            assert np.array_equal(made, expected.numpy())
    finally:
        torch.set_num_threads(before)


def test_sampling_is_torchs() -> None:
    assert sampling.samples_as_torch()
    rng = np.random.default_rng(4)
    for _ in range(20):
        height, width, h, w = (int(n) for n in rng.integers(1, 60, 4))
        image = rng.integers(0, 256, (height, width)).astype(np.float32)
        grid = torch.from_numpy(rng.uniform(-1.3, 1.3, (1, h, w, 2)).astype(np.float32))
        made = torch.nn.functional.grid_sample(torch.from_numpy(image)[None, None], grid, align_corners=False)
        assert np.array_equal(sampling.sampled(image, grid[0].numpy()), made[0, 0].numpy())


@pytest.mark.parametrize("finds", [False, True])
def test_points_travel_where_torchs_products_differ(photo: Path, finds: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def turned() -> torch.Tensor:
        return F.rotate(
            v1.functional.pil_to_tensor(Image.open(photo).convert("RGB")), 33.0, v1.InterpolationMode.BILINEAR
        )

    monkeypatch.setattr(sampling, "_finds_torchs_points", lambda threads: finds)
    expected = turned()
    with stoker.torchvision.enabled():
        made = turned()
        assert isinstance(made, LazyTensor) and made._real is None
        assert made._rows[0].node.op == (recipe.TORCH_WARP if finds else recipe.TORCH_GRID)
        exactly(made, expected)


OTHER_PROCESSOR = """
import torch
from stoker.frontends.torchvision import resizes, sampling
assert not sampling.samples_as_torch()
print([resizes._way(kind, antialias, 3, (40, 50)) for kind in (0, 1) for antialias in (False, True)])
"""


def test_a_torch_without_fused_multiply_adds_is_left_alone() -> None:
    """Its kernels for old processors, which add up otherwise."""
    import os

    environment = os.environ | {"ATEN_CPU_CAPABILITY": "default"}
    made = subprocess.run([sys.executable, "-c", OTHER_PROCESSOR], env=environment, capture_output=True, text=True)
    assert made.stdout.strip() == "[None, None, None, None]", made.stderr
