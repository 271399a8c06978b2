# SPDX-License-Identifier: Apache-2.0
"""timm's AugMix, whose chains are added in NumPy, is recorded; a method that differs runs unchanged."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

import stoker.torchvision
from stoker.frontends.torchvision import counts
from stoker.frontends.torchvision.pillow import augmix
from tests.takeover.lazily import lazily
from tests.takeover.scripts import Folder, run
from tests.takeover.test_script import equal

import torchvision.transforms as transforms  # isort: skip


def summed(self: Any, img: Any, mixing_weights: Any) -> np.ndarray:
    """Add chains like timm's method: the pixels of each as an array."""
    total = np.zeros_like(img, dtype=np.float32)
    for weight in mixing_weights:
        depth = self.depth if self.depth > 0 else np.random.randint(1, 4)
        view = img
        for operation in np.random.choice(self.ops, depth, replace=True):
            view = operation(view)
        total += weight * np.asarray(view, dtype=np.float32)
    return np.clip(total, 0, 255.0)


def chains_in_numpy(self: Any, img: Any, mixing_weights: Any, m: Any) -> Any:
    """Mix like timm's method, in NumPy."""
    return Image.blend(img, Image.fromarray(summed(self, img, mixing_weights).astype(np.uint8)), m)


def rounded(self: Any, img: Any, mixing_weights: Any, m: Any) -> Any:
    """Round instead of truncating, like another release might."""
    return Image.blend(img, Image.fromarray(np.rint(summed(self, img, mixing_weights)).astype(np.uint8)), m)


def drawn_otherwise(self: Any, img: Any, mixing_weights: Any, m: Any) -> Any:
    """Draw one more random number."""
    result = chains_in_numpy(self, img, mixing_weights, m)
    np.random.random()
    return result


def failing(self: Any, img: Any, mixing_weights: Any, m: Any) -> Any:
    """Raise an error for images that are not square."""
    if img.size != (56, 56):
        raise ValueError(img.size)
    return chains_in_numpy(self, img, mixing_weights, m)


class AugMix:
    """timm's class without its method."""

    def __init__(self, depth: int = -1) -> None:
        self.ops = [
            ImageOps.autocontrast, ImageOps.equalize, lambda x: ImageOps.posterize(x, 4),
            lambda x: x.rotate(12, Image.Resampling.BILINEAR), lambda x: ImageEnhance.Color(x).enhance(1.4),
        ]  # fmt: skip
        self.alpha, self.width, self.depth, self.blended = 1.0, 3, depth, False

    def __call__(self, img: Any) -> Any:
        weights = np.float32(np.random.dirichlet([self.alpha] * self.width))
        return self._apply_basic(img, weights, np.float32(np.random.beta(self.alpha, self.alpha)))  # type: ignore[attr-defined]


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], type]]:
    """A module with timm's name, whose class gets the test's method."""

    def make(method: Any) -> type:
        kind = type(augmix.CLASS, (AugMix,), {augmix.METHOD: method})
        module = ModuleType(augmix.MODULE)
        vars(module)[augmix.CLASS] = kind
        monkeypatch.setitem(sys.modules, augmix.MODULE, module)
        monkeypatch.setattr(augmix, "_known", {})
        return kind

    yield make
    assert not stoker.torchvision.is_enabled()


def loader(files: Path, augment: Any, workers: int) -> Any:
    steps = [transforms.RandomResizedCrop(56), augment, transforms.ToTensor()]
    dataset = Folder(str(files), transforms.Compose(steps))
    return torch.utils.data.DataLoader(dataset, batch_size=4, shuffle=True, num_workers=workers)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("depth", [-1, 2])
def test_chains_that_meet_in_numpy_stay_lazy(
    files: Path, package: Callable[[Any], type], depth: int, workers: int
) -> None:
    kind = package(chains_in_numpy)
    untouched = run(loader(files, kind(depth), workers))
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(loader(files, kind(depth), workers)))
    total = counts.totals()
    assert total[counts.NATIVE] >= 17 and total[counts.PIXELS] == total[counts.TORCH] == 0
    assert vars(kind)[augmix.METHOD] is chains_in_numpy, "undone"


@pytest.mark.parametrize("method", [rounded, drawn_otherwise, failing])
def test_another_method_is_left_alone(files: Path, package: Callable[[Any], type], method: Any) -> None:
    kind = package(method)
    untouched = run(loader(files, kind(), 0))
    counts.reset()
    with stoker.torchvision.enabled():
        equal(untouched, run(loader(files, kind(), 0)))
    assert counts.totals()[counts.PIXELS] > 17, "its arrays are materialized"


def test_a_view_that_is_not_recorded(files: Path, package: Callable[[Any], type]) -> None:
    """All chains are computed as pixels, with the same draws, if one of them ends in pixels."""

    def kind_of() -> Any:
        augment = package(chains_in_numpy)()
        augment.ops[0] = lambda x: Image.fromarray(255 - np.asarray(x))  # type: ignore[attr-defined]
        return augment

    untouched = run(loader(files, kind_of(), 0))
    with stoker.torchvision.enabled():
        equal(untouched, run(loader(files, kind_of(), 0)))


def test_a_package_that_is_imported_later(files: Path, package: Callable[[Any], type]) -> None:
    """The package is looked up again when a loop begins."""
    with stoker.torchvision.enabled():
        kind = package(chains_in_numpy)
        counts.reset()
        run(loader(files, kind(), 0))
        assert counts.totals()[counts.PIXELS] == 0


def test_trying_counts_nothing_and_draws_nothing(package: Callable[[Any], type]) -> None:
    kind = package(chains_in_numpy)
    with lazily():
        before, state = counts.totals(), np.random.get_state()
        assert augmix._is_known(chains_in_numpy, kind)
        assert not augmix._is_known(rounded, kind)
        assert np.array_equal(counts.totals(), before)
        assert np.array_equal(np.random.get_state()[1], state[1])
