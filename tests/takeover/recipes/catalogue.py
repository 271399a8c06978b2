# SPDX-License-Identifier: Apache-2.0
"""Catalogue of recipes, and the runner of one: its batches, their cost, and the outcome for its images."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import math
import random
import resource
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from tests.takeover.recipes import classification, dense, packages, views

import torchvision.transforms as v1  # isort: skip
from torchvision.transforms import v2  # isort: skip

import stoker.torchvision
from stoker.frontends.torchvision import counts


class Recipe(NamedTuple):
    """A script: how its loader is created, the packages it needs, and the number of files beside each image."""

    make: Callable[[str, int], Any]
    needs: tuple[str, ...] = ()
    beside: int = 0  # masks, which Pillow decodes, beside each image

    @property
    def missing(self) -> list[str]:
        """Return the packages that are not installed."""
        return [name for name in self.needs if importlib.util.find_spec(name) is None]


def _reference(library: Any, backend: str, policy: str, mixed: bool = False) -> Recipe:
    return Recipe(
        functools.partial(classification.reference, library=library, backend=backend, policy=policy, mixed=mixed)
    )


RECIPES: dict[str, Recipe] = {
    "pytorch/examples ImageNet, training": Recipe(classification.imagenet),
    "pytorch/examples ImageNet, validation": Recipe(classification.imagenet_validation),
    "the same, workers spawned": Recipe(classification.imagenet_spawned),
    "IterableDataset with get_worker_info": Recipe(classification.stream),
    "references classification, v1, PIL, RandAugment": _reference(v1, "pil", "ra"),
    "references classification, v1, tensor, TrivialAugment": _reference(v1, "tensor", "ta_wide"),
    "references classification, v2, PIL, TrivialAugment": _reference(v2, "pil", "ta_wide"),
    "references classification, v2, PIL, AutoAugment, MixUp and CutMix": _reference(v2, "pil", "imagenet", True),
    "references classification, v2, PIL, AugMix": _reference(v2, "pil", "augmix"),
    "references classification, v2, tensor, RandAugment": _reference(v2, "tensor", "ra"),
    "references detection, v1, flips": Recipe(dense.detection_v1),
    "references detection, v2, PIL, SSD": Recipe(dense.detection),
    "references detection, v2, tensor, jitter of scale": Recipe(
        functools.partial(dense.detection, backend="tensor", policy="lsj")
    ),
    "references segmentation, v1": Recipe(dense.segmentation, beside=1),
    "references segmentation, v2": Recipe(functools.partial(dense.segmentation, preset=dense.SecondPreset), beside=1),
    "MoCo v3": Recipe(views.moco_v3),
    "DINO": Recipe(views.dino),
    "SimCLR": Recipe(views.simclr),
    "MAE, DistributedSampler": Recipe(views.mae),
    "torchdata StatefulDataLoader": Recipe(packages.stateful, ("torchdata",)),
    "timm": Recipe(packages.timm, ("timm",)),
    "timm, prefetcher": Recipe(functools.partial(packages.timm, prefetcher=True), ("timm",)),
    "timm, prefetcher, three AugMix splits": Recipe(
        functools.partial(packages.timm, prefetcher=True, splits=3), ("timm",)
    ),
    "timm, prefetcher, MixUp and CutMix": Recipe(
        functools.partial(packages.timm, prefetcher=True, mixup="elem"), ("timm",)
    ),
    "Hugging Face datasets, set_transform": Recipe(packages.hugging_face, ("datasets",)),
    "albumentations on np.array(image)": Recipe(packages.albumentations, ("albumentations", "cv2")),
    "OpenCV": Recipe(packages.opencv, ("cv2",)),
}


class Run(NamedTuple):
    """One epoch: a digest of its batches, the number of images, wall time and processor time."""

    digest: str
    images: int
    wall_s: float
    cpu_s: float


def run(recipe: Recipe, root: str, workers: int) -> Run:
    """Run an epoch from a fixed random state."""
    for seed in (torch.manual_seed, random.seed, np.random.seed):
        seed(11)
    digest = hashlib.sha256()
    images = 0
    wall, cpu = time.perf_counter(), _cpu_s()
    loader = recipe.make(root, workers)
    for batch in loader:
        images += _add(digest, batch)
    del loader
    return Run(digest.hexdigest(), images, time.perf_counter() - wall, _cpu_s() - cpu)


class Outcome(NamedTuple):
    """Outcome of a recipe that was taken over: its run, the share of images that stayed lazy, and all counts."""

    run: Run
    lazy: float
    counted: dict[str, int]


def run_taken_over(recipe: Recipe, root: str, workers: int) -> Outcome:
    """Run an epoch with the take-over enabled."""
    counts.reset()
    with stoker.torchvision.enabled():
        done = run(recipe, root, workers)
        total, report = counts.totals(), stoker.torchvision.report().counts
    foreign = max(0, int(total[counts.PILLOW]) - recipe.beside * done.images)
    fell_back = foreign + int(total[counts.PIXELS]) + int(total[counts.FORCED])
    lazy = max(0, int(total[counts.NATIVE]) - fell_back) / done.images
    return Outcome(done, min(lazy, 1.0), report)


def _cpu_s() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def _add(digest: Any, x: Any) -> int:
    """Add a batch to a digest, and return its number of images."""
    digest.update(type(x).__name__.encode())
    if isinstance(x, torch.Tensor):
        digest.update(
            f"{x.dtype}{tuple(x.shape)}".encode() + x.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        )
        is_image = x.dtype in (torch.float32, torch.uint8) and x.ndim >= 3
        return math.prod(x.shape[:-3]) if is_image else 0
    if isinstance(x, dict):
        return sum(_add(digest, pair) for pair in x.items())
    if isinstance(x, (list, tuple)):
        return sum(_add(digest, y) for y in x)
    digest.update(repr(x).encode())
    return 0
