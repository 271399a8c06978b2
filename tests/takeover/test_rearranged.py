# SPDX-License-Identifier: Apache-2.0
"""Patches and masks: views and copies of lazy tensors that are recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms.v2 import functional as F

from stoker.frontends.torchvision import counts
from stoker.frontends.torchvision.hooks.large_results import LargeResults
from stoker.frontends.torchvision.ir import steps
from stoker.frontends.torchvision.ir.recipe import Node
from stoker.frontends.torchvision.materialize.materialization import Materialization
from stoker.frontends.torchvision.reference.float_replay import replay_floats
from stoker.frontends.torchvision.tensors import floats, rearranged
from stoker.frontends.torchvision.tensors.tensor import LazyTensor
from stoker.native import _native
from tests.takeover.conftest import exactly
from tests.takeover.lazily import lazily

Tensor = torch.Tensor


def load(photo: Path, height: int = 56, width: int = 84) -> Tensor:
    """Return a standardized batch of one photograph."""
    image = F.resize(F.pil_to_tensor(Image.open(photo).convert("RGB")).contiguous().unsqueeze(0), [height, width])
    return F.normalize(image.to(torch.float32), [120.0, 110.0, 99.0], [60.0, 61.0, 62.0], inplace=True)


def merged(x: Tensor, times: int = 2) -> Tensor:
    """Return patches of 14x14 in groups of 2x2, each ``times`` times, as video models take them."""
    n, c, h, w = x.shape
    x = x.reshape(n, c, h // 28, 2, 14, w // 28, 2, 14).permute(0, 2, 5, 3, 6, 1, 4, 7)
    return x.unsqueeze(6).expand(-1, -1, -1, -1, -1, -1, times, -1, -1).reshape(n, h * w // 196, c * times * 196)


def by_pixel(x: Tensor) -> Tensor:
    """Return patches whose pixels have adjacent channels."""
    c, h, w = x.shape[1:]
    return x[0].reshape(c, h // 14, 14, w // 14, 14).permute(1, 3, 2, 4, 0).reshape(h * w // 196, -1)


REARRANGED: dict[str, Callable[[Tensor], Tensor]] = {
    "merged patches": merged,
    "patches": lambda x: merged(x, 1),
    "patches of one image": lambda x: merged(x)[0],
    "by pixel": by_pixel,
    "channels last": lambda x: x.permute(0, 2, 3, 1).contiguous(),
    "transposed": lambda x: x.view(1, 3, 56, 84).transpose(-1, -2).contiguous(),
    "unfolded": lambda x: x.unfold(2, 14, 14).unfold(3, 28, 28).permute(0, 2, 3, 1, 4, 5).flatten(1, 2).flatten(2),
    "joined": lambda x: torch.cat([merged(x)[0], by_pixel(x.flip(-1)).repeat(1, 2), merged(x * 2)[0]]),
    "stacked": lambda x: torch.stack([merged(x), merged(x.flip(-2))]),
    "flat pixels": lambda x: x.flatten(2).transpose(1, 2).contiguous(),
}  # fmt: skip
OTHERS: dict[str, Callable[[Tensor], Any]] = {
    "a part": lambda x: merged(x[..., :28, :56]),
    "a part of the patches": lambda x: merged(x)[0, 3:5],
    "copies outside": lambda x: x.expand(2, -1, -1, -1).reshape(6, 56, 84),
    "overlapping": lambda x: x.unfold(3, 28, 14).contiguous(),
    "a sum": lambda x: merged(x).sum(1),
    "two types": lambda x: torch.cat([merged(x)[0], merged(x)[0].double()]),
    "changed afterwards": lambda x: (merged(x), x.view(3, 56, 84).add_(1), x)[::2],
    "a view that is changed": lambda x: (x.view(3, 56, 84).permute(1, 2, 0).mul_(2), x)[1],
    "changed before the copy": lambda x: (lambda v: (x.add_(3), v.permute(0, 2, 1).contiguous()))(x.view(1, 3, -1))[1],
    "bytes": lambda x: merged(x.to(torch.uint8)),
}


def equal(expected: Any, ours: Any) -> None:
    """Assert equal values, shapes and strides."""
    if isinstance(expected, tuple):
        for x, y in zip(expected, ours, strict=True):
            equal(x, y)
        return
    assert (ours.shape, ours.stride(), ours.dtype) == (expected.shape, expected.stride(), expected.dtype)
    exactly(expected, ours.clone())


@pytest.mark.parametrize("name", REARRANGED)
def test_values_in_another_order(photo: Path, name: str, isa: str) -> None:
    expected = REARRANGED[name](load(photo))
    counts.reset()
    with lazily(), rearranged.rearranging():
        ours = REARRANGED[name](load(photo))
        assert name == "joined" or not counts.totals()[counts.TORCH], "recorded"
        equal(expected, ours)


@pytest.mark.parametrize("name", OTHERS)
def test_other_uses(photo: Path, name: str) -> None:
    expected = OTHERS[name](load(photo))
    with lazily(), rearranged.rearranging():
        equal(expected, OTHERS[name](load(photo)))


BAD: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda x: merged(x).view(11, -1),
    lambda x: x.view(3, -1).permute(0, 2),
    lambda x: x.view(1, 3, -1)[4],
)


@pytest.mark.parametrize("bad", BAD)
def test_errors_are_torchs(photo: Path, bad: Any) -> None:
    with pytest.raises((RuntimeError, IndexError)) as expected:
        bad(load(photo))
    with lazily(), rearranged.rearranging(), pytest.raises(type(expected.value)) as ours:
        bad(load(photo))
    assert str(ours.value) == str(expected.value)


def _arranged(axes: tuple[int, ...], image: Node, copies: int = 1) -> Node:
    width, height = image.size
    return image.then(steps.Arrange(axes), (width * image.channels * copies, height), 1)


@pytest.mark.parametrize("between", [(), (steps.Pointwise((3, 2.0, 2.0, 2.0)),)])
@pytest.mark.parametrize("channels", [1, 3])
def test_the_plain_twin_is_native_code(channels: int, between: Any, isa: str) -> None:
    generator = np.random.default_rng(3)
    for width, height, (down, across) in ((30, 12, (3, 5)), (2100, 4, (2, 3)), (6, 4, (4, 6)), (5, 1, (1, 1))):
        image = Node.pixels(generator.integers(0, 256, height * width * channels, np.uint8), (width, height), channels)
        table = floats.Table(torch.randn(channels, 1, 256))
        node = image.then(steps.Floats(table))
        for step in between:  # another step leaves the values to the steps one by one
            node = node.then(step)
        axes = [(1, down, height // down), (2, across, width // across), (0, channels, 1), (3, 2, 0)]
        axes += [(1, height // down, 1), (2, width // across, 1)]
        for order in ((0, 1, 2, 3, 4, 5), (5, 4, 3, 2, 1, 0), (0, 1, 4, 5, 2, 3)):
            arranged = _arranged(tuple(n for at in order for n in axes[at]), node, 2)
            row = floats.float_row(arranged)
            exactly(LazyTensor([row], ()).materialize(), replay_floats(arranged))


def test_wrong_axes_are_refused() -> None:
    image = Node.pixels(np.arange(48, dtype=np.uint8), (4, 4), 3)
    as_floats = image.then(steps.Floats(floats.Table(torch.linspace(0, 1, 256).expand(3, 1, 256))))
    whole = (0, 3, 1, 1, 4, 1, 2, 4, 1)
    for node, why in (
        (_arranged(whole, image), "takes floats only"),
        (_arranged(whole[:-1], as_floats), "end early"),
        (_arranged((4, *whole[1:]), as_floats), "an axis that is not there"),
        (_arranged((0, 0, *whole[2:]), as_floats), "an axis that is not there"),
        (_arranged((*whole[:-1], 2), as_floats), "do not cover the image"),
        (_arranged((*whole[:-2], 3, 1), as_floats), "do not cover the image"),
        (_arranged((*whole, 2, 4, 1), as_floats), "do not cover the image"),
        (_arranged((*whole, 3, 1 << 17, 0), as_floats, 1 << 10), "too many copies"),
    ):
        with pytest.raises(RuntimeError, match=why):
            materialization = Materialization([LazyTensor([floats.float_row(node)], ())])
            _native.recipe.materialize(materialization.native_batch)
            materialization.finish()


# ---- masks ----

SIDE = 1100


def _mask(*index: Any, value: Any = 1, shape: tuple[int, ...] = (1, SIDE, SIDE), dtype: Any = torch.int64) -> Tensor:
    mask = torch.zeros(shape, dtype=dtype)
    mask[index] = value
    return mask


MASKS: dict[str, Callable[[], Any]] = {
    "whole": lambda: _mask(Ellipsis, slice(0, SIDE), slice(0, SIDE)),
    "in a corner": lambda: _mask(Ellipsis, slice(0, 90), slice(0, 1000)),
    "all columns": lambda: _mask(Ellipsis, slice(0, 90), slice(None)),
    "elsewhere": lambda: _mask(0, slice(7, 90), slice(5, 1000)),
    "steps": lambda: _mask(0, slice(7, 90, 3), slice(5, 1000, 2)),
    "row": lambda: _mask(0, 17, value=True),
    "floats": lambda: _mask(Ellipsis, slice(0, 90), slice(0, 9), value=0.3, dtype=torch.float32),
    "truncated": lambda: _mask(Ellipsis, slice(0, 90), slice(0, 9), value=1.9),
    "two": lambda: torch.stack([_mask(Ellipsis, slice(0, n), slice(0, n))[0] for n in (30, SIDE)], dim=0),
    "joined": lambda: torch.cat([_mask(0, slice(0, n)) for n in (30, SIDE)]),
    "of two images": lambda: _mask(Ellipsis, slice(0, 30), slice(0, 40), shape=(2, SIDE, SIDE)),
    "twice": lambda: _twice(_mask(Ellipsis, slice(0, 30), slice(0, 40))),
    "by a tensor": lambda: _mask(0, slice(0, 30), value=torch.arange(SIDE)),
    "at indices": lambda: _mask(0, torch.tensor([3, 4])),
    "part": lambda: _mask(Ellipsis, slice(0, 30), slice(0, 40))[:, 10:50],
    "sum": lambda: _mask(Ellipsis, slice(0, 30), slice(0, 40)).sum(),
    "a copy": lambda: _before_and_after(_mask(Ellipsis, slice(0, 30), slice(0, 40))),
}


def _twice(mask: Tensor) -> Tensor:
    row = mask[0]
    row[20:50, 3:8] = 7
    return mask


def _before_and_after(mask: Tensor) -> Any:
    joined = torch.cat([mask, mask])
    mask[0, 5:9] = 4
    return joined, mask


@pytest.mark.parametrize("name", MASKS)
def test_masks(name: str) -> None:
    expected = MASKS[name]()
    with rearranged.rearranging(), LargeResults():
        equal(expected, MASKS[name]())


def test_a_mask_is_recorded() -> None:
    with rearranged.rearranging(), LargeResults():
        mask = MASKS["two"]()
        assert rearranged.is_waiting(mask) and mask.numel() == 2 * SIDE * SIDE
        with pytest.raises(IndexError):
            mask[5, 3, 2, 1] = 1
    assert mask.sum() == 30 * 30 + SIDE * SIDE
