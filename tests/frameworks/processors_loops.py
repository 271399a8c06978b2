# SPDX-License-Identifier: Apache-2.0
"""Image processors of Hugging Face transformers, taken over: every value as untouched. ``make trainers`` runs it."""

from __future__ import annotations

import tests.takeover.declared  # noqa: F401  # makes torchvision's library loadable, before others import it

# isort: split

from pathlib import Path
from typing import Any

import pytest
import torch
from photographs import photograph
from PIL import Image

pytest.importorskip("torchvision")
transformers = pytest.importorskip("transformers")

import stoker.torchvision  # noqa: E402
from stoker.frontends.torchvision import counts  # noqa: E402

pytestmark = pytest.mark.leaks("transformers keeps a thread")
PROCESSORS: dict[str, tuple[str, dict[str, Any]]] = {
    "CLIP": ("CLIPImageProcessor", {}),
    "SigLIP": ("SiglipImageProcessor", {}),
    "ViT": ("ViTImageProcessor", {}),
    "DINOv2": ("BitImageProcessor", {"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 224}}),
    "Qwen2-VL": ("Qwen2VLImageProcessor", {}),
    "DETR": ("DetrImageProcessor", {"size": {"shortest_edge": 200, "longest_edge": 333}}),
}


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Photographs of two sizes."""
    root = tmp_path_factory.mktemp("processors")
    for at in range(4):
        Image.fromarray(photograph(at, 180 + 50 * (at % 2), 240)).save(root / f"{at}.jpg", quality=90)
    return sorted(root.iterdir())


def _options(name: str, count: int) -> dict[str, Any]:
    if name != "DETR":
        return {}
    box = {"category_id": 3, "bbox": [10.0, 20.0, 100.0, 90.5], "area": 9000.0, "iscrowd": 0}
    return {"annotations": [{"image_id": at, "annotations": [box]} for at in range(count)]}


def _check(expected: Any, ours: Any) -> None:
    assert type(expected) is type(ours)
    if isinstance(expected, torch.Tensor):
        assert (expected.shape, expected.dtype, expected.stride()) == (ours.shape, ours.dtype, ours.stride())
        assert torch.equal(expected, ours)
    elif hasattr(expected, "keys"):
        assert list(expected.keys()) == list(ours.keys())
        for key in expected.keys():  # noqa: SIM118 - a batch of transformers iterates over other things
            _check(expected[key], ours[key])
    elif isinstance(expected, (list, tuple)):
        for x, y in zip(expected, ours, strict=True):
            _check(x, y)
    else:
        assert expected == ours


def _images(photos: list[Path], loaded: bool) -> list[Any]:
    images = [Image.open(path) for path in photos]
    for image in images if loaded else []:
        image.load()
    return images


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("name", PROCESSORS)
def test_a_call(photos: list[Path], name: str, loaded: bool) -> None:
    kind, settings = PROCESSORS[name]
    processor = getattr(transformers, kind)(**settings)
    options = {"return_tensors": "pt", **_options(name, len(photos))}
    expected = processor(images=_images(photos, loaded), **options)
    counts.reset()
    with stoker.torchvision.enabled():
        ours = processor(images=_images(photos, loaded), **options)
    _check(expected, ours)
    total = counts.totals()
    assert total[counts.NATIVE] + total[counts.FORCED] >= len(photos) and not total[counts.RETRIED]


class _Data(torch.utils.data.Dataset[Any]):
    """Data set with a transform of a batch, as ``set_transform`` of the ``datasets`` package."""

    def __init__(self, photos: list[Path], processor: Any) -> None:
        self.photos, self.processor = photos, processor

    def __len__(self) -> int:
        return len(self.photos)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        images = [Image.open(self.photos[i]).convert("RGB") for i in indices]
        batch = self.processor(images, return_tensors="pt")
        return [{"pixel_values": batch["pixel_values"][i], "label": index} for i, index in enumerate(indices)]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("name", ["CLIP", "SigLIP", "ViT", "DINOv2"])
def test_set_transform(photos: list[Path], name: str, workers: int) -> None:
    kind, settings = PROCESSORS[name]
    dataset = _Data(photos, getattr(transformers, kind)(**settings))
    expected = list(torch.utils.data.DataLoader(dataset, batch_size=2, num_workers=workers))
    counts.reset()
    with stoker.torchvision.enabled():
        _check(expected, list(torch.utils.data.DataLoader(dataset, batch_size=2, num_workers=workers)))
        assert counts.totals()[counts.NATIVE] == len(photos) and not counts.totals()[counts.FORCED]


@pytest.mark.parametrize("workers", [0, 2])
def test_set_transform_of_the_datasets_package(photos: list[Path], workers: int) -> None:
    datasets = pytest.importorskip("datasets")
    processor = transformers.ViTImageProcessor()
    data = datasets.Dataset.from_dict({"image": [str(p) for p in photos], "label": list(range(len(photos)))})
    data = data.cast_column("image", datasets.Image())

    def transform(batch: Any) -> Any:
        result = processor(images=[image.convert("RGB") for image in batch["image"]], return_tensors="pt")
        result["label"] = batch["label"]
        return result

    data.set_transform(transform)
    expected = list(torch.utils.data.DataLoader(data, batch_size=2, num_workers=workers))
    counts.reset()
    with stoker.torchvision.enabled():
        _check(expected, list(torch.utils.data.DataLoader(data, batch_size=2, num_workers=workers)))
        assert counts.totals()[counts.NATIVE] == len(photos) and not counts.totals()[counts.FORCED]
