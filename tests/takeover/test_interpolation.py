# SPDX-License-Identifier: Apache-2.0
"""torch's additions of floats in resizing and filtering: the plain twins give its bits, and detect other orders."""

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

from stoker.frontends.torchvision.ir import steps
from stoker.frontends.torchvision.ir.recipe import Node
from stoker.frontends.torchvision.materialize.eager import planar_pixels
from stoker.frontends.torchvision.reference import sampling, sums
from stoker.frontends.torchvision.reference.interpolation import (
    APART,
    CUBIC,
    LINEAR,
    ROUNDED,
    SMOOTH,
    TOGETHER,
    interpolate,
    is_torch_way,
)
from stoker.frontends.torchvision.tensors import resizes
from stoker.frontends.torchvision.tensors.tensor import LazyTensor
from tests.idle_clock import HANG_S
from tests.takeover import trials
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily

MODES = {LINEAR: "bilinear", CUBIC: "bicubic"}


def random_sizes(seed: int) -> tuple[tuple[int, int], tuple[int, int]]:
    rng = np.random.default_rng(seed)
    (height, width), (h, w) = rng.integers(1, 90, 2), rng.integers(1, 120, 2)
    return (int(height), int(width)), (int(h), int(w))


def built(kind: int) -> tuple[int, int]:
    """Return the ways per axis of this torch's build, and of other builds."""
    way = resizes._find_way(kind, False, 1, (200, 200))
    return (APART, ROUNDED) if way == APART else (ROUNDED, APART)


@pytest.mark.parametrize("kind", MODES)
@pytest.mark.parametrize("name", ["smooth", "axis by axis", "together"])
def test_the_twin_is_torch(kind: int, name: str) -> None:
    if kind == CUBIC and name == "together":
        return
    way = {"smooth": SMOOTH, "axis by axis": built(kind)[0], "together": TOGETHER}[name]
    channels = 3 if way == TOGETHER else 1
    trial = {SMOOTH: resizes._SMOOTH_TRIALS, TOGETHER: resizes._SMALL_TRIALS}.get(way, resizes._LARGE_TRIALS)
    if not is_torch_way(kind, way, channels, trial):
        assert not sampling.has_equal_samples(), "torch's kernels without fused multiply-adds"
        return
    for seed in range(25):
        source, (h, w) = random_sizes(seed)
        if (way == SMOOTH and w == 1) or (way == TOGETHER and h + w > 128):
            continue  # torch computes these in another way
        h += 130 if name == "axis by axis" and kind == LINEAR else 0
        image = np.random.default_rng(seed).integers(0, 256, (channels, *source)).astype(np.float32)
        expected = torch.nn.functional.interpolate(
            torch.from_numpy(image)[None], size=[h, w], mode=MODES[kind], antialias=way == SMOOTH
        )[0].numpy()
        for plane, wanted in zip(image, expected, strict=True):
            assert np.array_equal(interpolate(plane, kind, way, (h, w)), wanted), (source, (h, w))


def test_another_order_is_detected() -> None:
    repeated = sampling.has_equal_samples()  # none of a build without fused multiply-adds
    assert is_torch_way(LINEAR, TOGETHER, 3, resizes._SMALL_TRIALS) == repeated
    assert not is_torch_way(LINEAR, APART, 3, resizes._SMALL_TRIALS)
    assert not is_torch_way(LINEAR, TOGETHER, 1, resizes._LARGE_TRIALS)
    for kind in MODES:
        way, other = built(kind)
        assert is_torch_way(kind, way, 1, resizes._LARGE_TRIALS) == repeated
        assert not is_torch_way(kind, other, 1, resizes._LARGE_TRIALS)
    assert sums.is_filter_in_order(3, (3, 3), (47, 37)) or not repeated
    assert sums.is_filter_in_order(1, (3, 3), (160, 140)) or not repeated
    if sums.product_order((3, 3)) != sums.ONE_BY_ONE:
        assert not sums.is_filter_in_order(1, (3, 3), (47, 37)), "small products of matrices are added up otherwise"


@pytest.mark.parametrize("kind", MODES)
def test_native_code_has_the_bits_of_every_build(kind: int, isa: str) -> None:
    """Native code gives the twin's rounded bits also in ways that this torch does not use."""
    ways = [way for way in (SMOOTH, APART, TOGETHER, ROUNDED) if kind == LINEAR or way != TOGETHER]
    twins = {}
    for seed, (source, size) in enumerate([((60, 56), (240, 384)), *(random_sizes(seed) for seed in range(1, 12))]):
        image = np.random.default_rng(seed).integers(0, 256, source, np.uint8)
        node = Node.pixels(image.reshape(-1), (source[1], source[0]), 1)
        for way in ways:
            twin = np.clip(np.rint(interpolate(image.astype(np.float32), kind, way, size)), 0, 255)
            resized = planar_pixels(node.then(steps.TorchResizeFloats(*size, kind, way), (size[1], size[0])))
            assert resized is not None and np.array_equal(resized[0], twin.astype(np.uint8)), (way, source, size)
            twins[seed, way] = twin
    assert not np.array_equal(twins[0, APART], twins[0, ROUNDED]), "many bytes show a difference"


@pytest.mark.parametrize("channels", [1, 3])
def test_steps_whose_trials_succeed_are_recorded(channels: int) -> None:
    for kind in MODES:
        for antialias in (False, True):
            for sides in ((40, 50), (200, 210)):
                assert (resizes._find_way(kind, antialias, channels, sides) is not None) == sampling.has_equal_samples()


@pytest.mark.leaks("torch keeps its threads")
def test_the_order_depends_on_the_number_of_threads() -> None:
    """With one thread torch has another way for three channels."""
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 1):
            torch.set_num_threads(threads)
            way = resizes._find_way(LINEAR, False, 3, (170, 190))
            assert (way is not None) == sampling.has_equal_samples()
            if way is None:
                continue
            image = np.random.default_rng(2).integers(0, 256, (3, 120, 150)).astype(np.float32)
            expected = torch.nn.functional.interpolate(torch.from_numpy(image)[None], size=[170, 190], mode="bilinear")[
                0
            ]
            resized = np.stack([interpolate(plane, LINEAR, way, (170, 190)) for plane in image])
            assert np.array_equal(resized, expected.numpy())
    finally:
        torch.set_num_threads(before)


def test_sampling_is_torchs() -> None:
    if not sampling.has_equal_samples():
        assert resizes._find_way(LINEAR, True, 3, (40, 50)) is None, "torch's kernels without fused multiply-adds"
        return
    rng = np.random.default_rng(4)
    for _ in range(20):
        height, width, h, w = (int(n) for n in rng.integers(1, 60, 4))
        image = rng.integers(0, 256, (height, width)).astype(np.float32)
        grid = torch.from_numpy(rng.uniform(-1.3, 1.3, (1, h, w, 2)).astype(np.float32))
        sampled = torch.nn.functional.grid_sample(torch.from_numpy(image)[None, None], grid, align_corners=False)
        assert np.array_equal(sampling.twin_values(image, grid[0].numpy()), sampled[0, 0].numpy())


@pytest.mark.parametrize("others", [(), ("points",), trials.SUMS])
def test_points_are_sent_where_torchs_products_differ(photo: Path, others: tuple[str, ...]) -> None:
    def turned() -> torch.Tensor:
        return F.rotate(
            v1.functional.pil_to_tensor(Image.open(photo).convert("RGB")), 33.0, v1.InterpolationMode.BILINEAR
        )

    expected = turned()
    with lazily(), trials.other_sums(*others), trials.watched() as answered:
        finds, image = sampling.has_equal_points(), turned()
        if issubclass(type(image), LazyTensor):
            assert image._materialized is None
            assert image._rows[0].node.op == (steps.TORCH_WARP if finds else steps.TORCH_GRID)
        else:
            assert not all(answered[1:]), "the trials after the one of points fail"
        exactly(image, expected)


OTHER_PROCESSOR = """
import torch
from stoker.frontends.torchvision.tensors import resizes
from stoker.frontends.torchvision.reference import sampling
assert not sampling.has_equal_samples()
print([resizes._find_way(kind, antialias, 3, (40, 50)) for kind in (0, 1) for antialias in (False, True)])
"""


def test_a_torch_without_fused_multiply_adds_is_left_alone() -> None:
    """torch's kernels for old processors add in another order."""
    import os

    environment = os.environ | {"ATEN_CPU_CAPABILITY": "default"}
    done = subprocess.run(
        [sys.executable, "-c", OTHER_PROCESSOR], env=environment, capture_output=True, text=True, timeout=HANG_S
    )
    assert done.stdout.strip() == "[None, None, None, None]", done.stderr
