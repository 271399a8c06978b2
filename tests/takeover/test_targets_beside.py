# SPDX-License-Identifier: Apache-2.0
"""Boxes, masks, key points and videos beside an image: all values as untouched, and the image stays recorded."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from photographs import photograph
from PIL import Image
from torch.utils.data import DataLoader
from torchvision import tv_tensors
from torchvision.transforms import v2
from torchvision.transforms.v2.functional import _misc

import stoker.torchvision
from stoker.frontends.torchvision import counts
from tests.takeover.lazily import lazily
from tests.takeover.recipes import presets
from tests.takeover.scripts import run


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Ten photographs of several sizes."""
    root = tmp_path_factory.mktemp("beside")
    for at in range(10):
        Image.fromarray(photograph(at, 110 + 17 * (at % 3), 150 + 13 * (at % 4))).save(root / f"{at}.jpg", quality=85)
    return str(root)


def _bytes(x: torch.Tensor) -> bytes:
    return x.as_subclass(torch.Tensor).contiguous().numpy().tobytes()


def equal(a: Any, b: Any) -> None:
    """Assert that two batches are equal in types, attributes, shapes and every bit."""
    assert type(a) is type(b)
    if isinstance(a, torch.Tensor):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert getattr(a, "format", None) == getattr(b, "format", None)
        assert getattr(a, "canvas_size", None) == getattr(b, "canvas_size", None)
        assert _bytes(a) == _bytes(b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        equal(list(a.values()), list(b.values()))
    elif isinstance(a, (list, tuple)):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            equal(x, y)
    else:
        assert a == b


def check(make: Callable[[], Any], images: int) -> None:
    """Compare a loader untouched and taken over, in all values and draws."""
    untouched, state = run(make()), torch.get_rng_state()
    counts.reset()
    with stoker.torchvision.enabled():
        ours = run(make())
        total = counts.totals()
    equal(untouched, ours)
    assert torch.equal(torch.get_rng_state(), state)
    assert total[counts.NATIVE] == images, "every image is recorded to its end"
    assert not total[[counts.FORCED, counts.PIXELS, counts.TORCH, counts.RETRIED]].any()
    counts.reset()


@pytest.mark.parametrize("backend", presets.BACKENDS)
@pytest.mark.parametrize("policy", presets.POLICIES)
def test_detection(photos: str, policy: str, backend: str) -> None:
    about = {"parts": ("masks", "keypoints") if policy == "multiscale" else ("masks",)}
    check(functools.partial(presets.detection, photos, 0, policy, backend, 160, **about), 10)


@pytest.mark.parametrize("policy", ["multiscale", "ssd"])
def test_detection_in_workers(photos: str, policy: str) -> None:
    check(functools.partial(presets.detection, photos, 2, policy, "tv_tensor", 160, parts=("masks",)), 10)


@pytest.mark.parametrize("box_format", ["XYWH", "CXCYWH"])
def test_other_formats_of_boxes(photos: str, box_format: str) -> None:
    check(functools.partial(presets.detection, photos, 0, "ssd", "pil", 160, box_format=box_format), 10)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("backend", presets.BACKENDS)
def test_segmentation(photos: str, backend: str, workers: int) -> None:
    check(functools.partial(presets.segmentation, photos, workers, backend, 120, 100), 8)


@pytest.mark.parametrize("backend", ["pil", "tv_tensor"])
def test_all_kinds_of_targets_keep_their_classes(photos: str, backend: str) -> None:
    """Without ``ToPureTensor``, formats and canvas sizes are visible."""
    geometry = [
        v2.RandomAffine(20, translate=(0.1, 0.1), scale=(0.8, 1.2)),
        v2.RandomPerspective(p=0.7),
        v2.RandomResizedCrop(90, antialias=True),
        v2.RandomVerticalFlip(0.5),
        v2.Pad(3),
        v2.ToImage(),
    ]
    transform = v2.Compose([*presets._FIRST[backend], *geometry])

    def make() -> Any:
        dataset = presets.Coco(photos, transform, ("masks", "keypoints", "video"))
        return DataLoader(dataset, batch_size=4, shuffle=True, collate_fn=presets.listed)

    untouched, state = run(make()), torch.get_rng_state()
    with stoker.torchvision.enabled():
        ours = run(make())
    equal(untouched, ours)
    assert torch.equal(torch.get_rng_state(), state)
    assert isinstance(ours[0][1][0]["boxes"], tv_tensors.BoundingBoxes)


# ---- arithmetic on boxes ----

SPECIAL = [
    [[10.0, 10.0, 10.0, 10.0]],
    [[0.0, 0.0, 200.0, 120.0]],
    [[-5.0, 3.0, 250.0, 80.0], [20.25, 30.5, 60.125, 90.75]],
    [[60.0, 90.0, 20.0, 30.0], [1.0, 1.0, 199.0, 119.0]],
    [[float("nan"), 3.0, 20.0, 80.0], [20.0, 30.0, 60.0, 90.0]],
    [[0.0, 0.0, float("inf"), 80.0], [20.0, 30.0, 60.0, 90.0]],
]


def _samples() -> list[Any]:
    rng = np.random.default_rng(5)
    drawn = [(rng.random((n, 4)) * 130).astype(np.float32).tolist() for n in (1, 2, 5, 9) for _ in range(8)]
    return SPECIAL + drawn


@pytest.mark.parametrize("options", [{}, {"min_scale": 0.1, "trials": 7}, {"sampler_options": [0.1, 0.31, 2]}])
def test_windows_of_random_iou_crop(options: Any) -> None:
    """The window, the kept boxes and the number of draws are torchvision's."""
    crop = v2.RandomIoUCrop(**options)
    image = tv_tensors.Image(torch.zeros(3, 120, 200, dtype=torch.uint8))

    def windows() -> list[Any]:
        torch.manual_seed(9)
        method = getattr(crop, "make_params", None) or crop._get_params
        found = []
        for boxes in _samples():
            target = tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(120, 200), dtype=torch.float32)
            found.append((method([image, target]), torch.get_rng_state()))
        return found

    expected = windows()
    with lazily():
        equal(expected, windows())
    assert any(params for params, _ in expected)


@pytest.mark.parametrize("limits", [{}, {"min_size": 7.5, "min_area": 100}])
def test_sanitized_boxes(limits: Any) -> None:
    def kept() -> list[Any]:
        sanitize = v2.SanitizeBoundingBoxes(**limits)
        results = []
        for boxes in _samples():
            target = {
                "boxes": tv_tensors.BoundingBoxes(boxes, format="XYXY", canvas_size=(120, 110), dtype=torch.float32),
                "labels": torch.arange(len(boxes)),
            }
            results.append(sanitize(target))
        return results

    expected = kept()
    with lazily():
        equal(expected, kept())


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_boxes_of_other_types_are_left_to_torchvision(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = tv_tensors.BoundingBoxes([[3, 4, 50, 60]], format="XYXY", canvas_size=(120, 110), dtype=dtype)
    expected = v2.SanitizeBoundingBoxes(labels_getter=None)(boxes)
    with lazily():
        equal(expected, v2.SanitizeBoundingBoxes(labels_getter=None)(boxes))


def test_the_hooks_end_with_the_fetch() -> None:
    before = _misc._get_sanitize_bounding_boxes_mask.__code__
    with lazily():
        assert _misc._get_sanitize_bounding_boxes_mask.__code__ is not before
    assert _misc._get_sanitize_bounding_boxes_mask.__code__ is before


@pytest.mark.parametrize("workers", [0, 2])
def test_images_of_torchvision_are_delivered_as_such(photos: str, workers: int) -> None:
    """The class of an image that no ``ToPureTensor`` changes arrives in the training loop."""

    def make() -> Any:
        dataset = presets.Coco(photos, v2.Compose([v2.ToImage(), v2.RandomHorizontalFlip(0.5)]))
        return DataLoader(dataset, batch_size=4, num_workers=workers, collate_fn=presets.listed)

    check(make, 10)
    with stoker.torchvision.enabled():
        assert all(type(image) is tv_tensors.Image for images, _ in make() for image in images)
