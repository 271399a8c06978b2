# SPDX-License-Identifier: Apache-2.0
"""The drawn shapes, ``stoker demo detection``, and the example in ``examples/detection``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from stoker.demo import detection, shapes
from stoker.demo.run import main

ROOT = Path(__file__).resolve().parents[2]


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


def test_the_example_runs(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the example trains with torch")
    command = [sys.executable, str(ROOT / "examples" / "detection" / "train.py"), "--fast", "--epochs", "1"]
    done = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    assert "epoch 1: loss" in done.stdout and "mAP at IoU 0.5" in done.stdout
    with Image.open(tmp_path / "detections.png") as image:
        assert image.size == (4 * 192, 3 * 192)
