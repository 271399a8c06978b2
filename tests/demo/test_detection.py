# SPDX-License-Identifier: Apache-2.0
"""The drawn shapes, ``stoker demo detection``, and the example in ``examples/detection``."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from stoker.demo import detection, shapes
from stoker.demo.run import main
from tests.forked import ForkServer
from tests.idle_clock import HANG_S

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "detection"


def test_annotations_lie_on_the_shapes(tmp_path: Path) -> None:
    found = json.loads(shapes.make(tmp_path / "a", 8, seed=3).read_text())
    assert {a["category_id"] for a in found["annotations"]} == {1, 2, 3}
    for one in found["annotations"]:
        points = np.array(one["segmentation"][0]).reshape(-1, 2)
        x, y, width, height = one["bbox"]
        np.testing.assert_allclose([*points.min(0), *np.ptp(points, 0)], [x, y, width, height], atol=1e-9)
        pixels = np.asarray(Image.open(tmp_path / "a" / f"{one['image_id'] - 1:06d}.jpg"), np.float64)
        inner = Image.new("L", (shapes.WIDTH, shapes.HEIGHT))
        centre = points.mean(0)
        ImageDraw.Draw(inner).polygon([tuple(centre + 0.8 * (p - centre)) for p in points], fill=1)
        own = pixels[np.asarray(inner) > 0]
        assert own.std(0).max() < 15, "the inside of a shape has one colour"
        corner = np.concatenate([pixels[:4, :4].reshape(-1, 3), pixels[-4:, -4:].reshape(-1, 3)])
        assert np.abs(own.mean(0) - corner.mean(0)).max() > 20
    again = shapes.make(tmp_path / "b", 8, seed=3)
    assert json.loads(again.read_text()) == found
    assert (tmp_path / "b" / "000003.jpg").read_bytes() == (tmp_path / "a" / "000003.jpg").read_bytes()


def test_the_demonstration_draws_boxes_and_masks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["detection", "--out", str(tmp_path)]) == 0
    assert "detection.png" in capsys.readouterr().out
    with Image.open(tmp_path / "detection.png") as image:
        assert image.width > 5 * 200 and image.height > detection.ROWS * 200
    assert main(["detection", "--out", str(tmp_path), "--data", str(tmp_path / "shapes")]) == 0


def test_masks_are_tinted_and_boxes_outlined() -> None:
    image, masks = np.zeros((20, 20, 3), np.uint8), np.zeros((1, 20, 20), np.uint8)
    masks[0, 5:15, 5:15] = 1
    shown = detection.drawn(detection.Sample(image, np.array([[2, 2, 18, 18]], np.float32), masks, np.array([1])))
    assert shown[10, 10].any() and shown[2, 10].any() and not shown[0, 0].any() and not shown[19, 19].any()


@pytest.mark.parametrize(
    ("program", "text", "sheet"),
    [
        ("train.py", "mAP at IoU 0.5", "detections.png"),
        ("train_masks.py", "mAP of masks at IoU 0.5", "instances.png"),
    ],
)
def test_the_example_runs(program: str, text: str, sheet: str, tmp_path: Path, forked: ForkServer) -> None:
    pytest.importorskip("torch", reason="the example trains with torch")
    done = forked.run(EXAMPLE / program, "--fast", "--epochs", "1", "--out", tmp_path, timeout=HANG_S)
    assert done.returncode == 0, done.stderr
    assert "epoch 1: loss" in done.stdout and text in done.stdout
    with Image.open(tmp_path / sheet) as image:
        assert image.size == (4 * 192, 3 * 192)


@pytest.fixture
def mask_chain(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return the module of the example's pipelines, which is not part of a package."""
    pytest.importorskip("torch", reason="the example's batches are of torch")
    monkeypatch.syspath_prepend(str(EXAMPLE))
    yield importlib.import_module("mask_chain")
    for name in ("mask_chain", "chain"):
        sys.modules.pop(name, None)


def test_batches_are_those_that_mask_rcnn_takes(mask_chain: Any, tmp_path: Path) -> None:
    import torch

    import stoker.torch

    file = shapes.make(tmp_path, 6, seed=4)
    runs = []
    for moved in ("polygons", "masks"):
        pipe = mask_chain.training(str(tmp_path), str(file), moved=moved, batch_size=6, num_threads=2, seed=3)
        images, offsets, labels, *truth = next(iter(stoker.torch.Loader(pipe)))
        assert offsets.shape[:2] == labels.shape and (labels > 0).any()
        runs.append(mask_chain.mask_rcnn_batch(images, *truth))
    (images, targets), (others, pixels) = runs
    assert len(images) == len(targets) == 6
    compared = 0
    for image, other, one, two in zip(images, others, targets, pixels, strict=True):
        assert image.dtype == torch.float32 and image.shape == (3, 96, 96) and torch.equal(image, other)
        count = len(one["boxes"])
        assert one["boxes"].shape == (count, 4) and one["boxes"].dtype == torch.float32
        assert one["labels"].shape == (count,) and one["labels"].dtype == torch.int64
        assert one["masks"].shape == (count, 96, 96) and one["masks"].dtype == torch.uint8
        assert torch.equal(one["boxes"], two["boxes"]) and torch.equal(one["labels"], two["labels"])
        for box, mask, again in zip(one["boxes"], one["masks"], two["masks"], strict=True):
            y, x = torch.nonzero(mask, as_tuple=True)
            assert x.min() >= box[0] - 1 and x.max() <= box[2] + 1 and y.min() >= box[1] - 1 and y.max() <= box[3] + 1
            both = (mask & again).sum() / (mask | again).sum()
            assert both > 0.8, "masks of moved polygons and moved masks are those of one object"
            compared += 1
    assert compared > 6
