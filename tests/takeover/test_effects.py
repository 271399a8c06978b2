# SPDX-License-Identifier: Apache-2.0
"""Effects on single pixels and regions against torchvision's functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torchvision.transforms.v2 import functional

from stoker import eager

IMAGE = np.random.default_rng(3).integers(0, 256, (37, 53, 3), dtype=np.uint8)


def by_torchvision(name: str, x: Any, *arguments: Any) -> Any:
    planar = torch.from_numpy(x.transpose(2, 0, 1).copy())
    return getattr(functional, name)(planar, *arguments).numpy().transpose(1, 2, 0)


@pytest.mark.parametrize("threshold", [0, 1, 100, 128, 255])
def test_solarize_is_torchvisions(threshold: int) -> None:
    got = np.asarray(eager.solarize(IMAGE, threshold=threshold))
    np.testing.assert_array_equal(got, by_torchvision("solarize", IMAGE, threshold))


@pytest.mark.parametrize("bits", range(9))
def test_posterize_is_torchvisions(bits: int) -> None:
    np.testing.assert_array_equal(
        np.asarray(eager.posterize(IMAGE, bits=bits)), by_torchvision("posterize", IMAGE, bits)
    )


def test_solarize_of_floats_is_torchvisions() -> None:
    x = np.random.default_rng(4).uniform(0, 1, (20, 30, 3)).astype(np.float32)
    got = np.asarray(eager.solarize(x, threshold=0.3))
    np.testing.assert_array_equal(got, by_torchvision("solarize", x, 0.3))


@pytest.mark.parametrize("low", [0, 30, 200])
def test_autocontrast_is_torchvisions(low: int) -> None:
    rng = np.random.default_rng(low)
    for k in range(20):
        x = rng.integers(low, low + 2 + int(rng.integers(1, 255 - low)), (9 + k, 14, 3)).clip(0, 255).astype(np.uint8)
        x[..., 1] = 77 if k % 3 == 0 else x[..., 1]
        np.testing.assert_array_equal(np.asarray(eager.autocontrast(x)), by_torchvision("autocontrast", x))
    y = rng.uniform(0.1, 0.8, (9, 14, 3)).astype(np.float32)
    np.testing.assert_array_equal(np.asarray(eager.autocontrast(y)), by_torchvision("autocontrast", y))


@pytest.mark.parametrize("factor", [0.0, 0.5, 1.0, 1.7, 5.0])
def test_sharpness_is_within_one_of_torchvisions(factor: float) -> None:
    want = by_torchvision("adjust_sharpness", IMAGE, factor).astype(int)
    apart = np.abs(np.asarray(eager.sharpness(IMAGE, factor=factor)).astype(int) - want)
    assert apart.max() <= 1 and (apart > 0).mean() < 0.01


def test_erase_is_torchvisions_for_integers() -> None:
    fill = torch.tensor([7, 8, 9], dtype=torch.uint8)[:, None, None]
    for y, x, height, width in ((0, 0, 5, 6), (10, 20, 27, 33), (36, 52, 1, 1)):
        want = by_torchvision("erase", IMAGE, y, x, height, width, fill)
        got = eager.erase(IMAGE, anchor=[y, x], shape=[height, width], fill_value=[7, 8, 9])
        np.testing.assert_array_equal(np.asarray(got), want)
