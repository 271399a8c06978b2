# SPDX-License-Identifier: Apache-2.0
"""Sums of many floats: the plain twin and native code give torch's last bits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torchvision.transforms.v2 import functional as F

from stoker.frontends.torchvision.ir import steps
from stoker.frontends.torchvision.ir.recipe import PLANAR, Node
from stoker.frontends.torchvision.materialize.eager import planar_pixels
from stoker.frontends.torchvision.reference import sums

SIDE = 512
pytestmark = pytest.mark.leaks("torch keeps its threads")


@pytest.fixture(params=[1, 2, 6, 16])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """torch with this number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def near_a_whole_mean(rng: np.random.Generator) -> Any:
    """Return bytes ``(height, width)`` whose mean is next to an integer, so that rounding decides its byte."""
    values = rng.integers(140, 250, SIDE * SIDE)
    wanted = round(values.mean()) * SIDE * SIDE + int(rng.integers(-3, 3))
    missing = wanted - int(values.sum())
    values[rng.permutation(SIDE * SIDE)[: abs(missing)]] += np.sign(missing)
    assert values.sum() == wanted
    return values.astype(np.uint8).reshape(SIDE, SIDE)


def test_the_plain_twin_is_torch(threads: int) -> None:
    rng = np.random.default_rng(threads)
    lanes = sums.sum_order(100_000, 1)
    assert lanes is not None, "this machine's order is known"
    for _ in range(15):
        values = rng.integers(0, 256, int(rng.integers(1, 1_500_000))).astype(np.float32)
        assert sums.sum_integers(values, lanes.lanes, threads) == float(torch.from_numpy(values).sum())


def test_another_order_is_detected(threads: int) -> None:
    order = sums.sum_order(100_000, 1)
    assert order is not None
    rng = np.random.default_rng(3)
    many = [rng.integers(0, 256, 200_001 * threads).astype(np.float32) for _ in range(8)]
    other = 16 if order.lanes == 8 else 8
    assert any(sums.sum_integers(v, other, threads) != float(torch.from_numpy(v).sum()) for v in many)


@pytest.mark.parametrize("threads", [1, 6], indirect=True)
@pytest.mark.parametrize("channels", [1, 3])
def test_native_sums_are_torchs(threads: int, channels: int, isa: str) -> None:
    """Native sums equal torch's, seen in the mean's byte of images for which the sum's last bit decides."""
    rng = np.random.default_rng(threads)
    order = sums.sum_order(SIDE * SIDE, 1)
    assert order is not None
    rounded_past = set()
    for _ in range(12):
        gray = near_a_whole_mean(rng)
        image = np.repeat(gray[None], channels, axis=0)
        node = Node.pixels(image.reshape(-1), (SIDE, SIDE), channels, PLANAR)
        result = planar_pixels(node.then(steps.TorchContrast(2, 0.0, *order)))
        expected = F.adjust_contrast(torch.from_numpy(image), 0.0)
        assert np.array_equal(result, expected.numpy())
        if channels == 1:
            rounded_past.add(int(expected[0, 0, 0]) == int(gray.astype(np.int64).sum()) // SIDE**2)
    assert channels == 3 or rounded_past == {True, False}, "for some the sum is rounded past a whole mean"


def test_unknown_sums_are_left_to_torch() -> None:
    assert sums.sum_order(sums.EXACT, 1) == (0, 1)
    assert sums.sum_order(40_000_000, 1) is None
    before = torch.get_num_threads()
    torch.set_num_threads(sums._MAX_THREADS + 1)
    try:
        assert sums.sum_order(100_000, 1) is None
        assert sums.sum_order(100_000, 2) is not None, "each image is one thread's"
    finally:
        torch.set_num_threads(before)
