# SPDX-License-Identifier: Apache-2.0
"""Images of drawn shapes with annotations in COCO's form: boxes and polygons that are known exactly."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

CLASSES = ("disc", "box", "triangle")
WIDTH, HEIGHT = 200, 150
ANNOTATIONS = "annotations.json"
_MOST_SHAPES = 4
_ATTEMPTS = 20
_OVERSAMPLED = 3  # shapes are drawn larger and scaled down, so that their edges are smooth

Polygon = list[tuple[float, float]]


def make(folder: Path, count: int, seed: int) -> Path:
    """Write ``count`` JPEG images and their annotations into ``folder``. Return the path of the annotation file.

    Args:
        folder: a folder, which is made; files of these names are replaced.
        count: number of images.
        seed: seed of all images. Equal arguments give equal pixels.

    Raises:
        OSError: a file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    categories = [{"id": i + 1, "name": name} for i, name in enumerate(CLASSES)]
    images: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for number in range(count):
        rng = np.random.default_rng((seed, number))
        image, shapes = _draw(rng)
        name = f"{number:06d}.jpg"
        image.save(folder / name, quality=92)
        images.append({"id": number + 1, "file_name": name, "width": WIDTH, "height": HEIGHT})
        for label, polygon in shapes:
            annotations.append(_annotation(len(annotations) + 1, number + 1, label, polygon))
    path = folder / ANNOTATIONS
    path.write_text(json.dumps({"categories": categories, "images": images, "annotations": annotations}))
    return path


def _annotation(number: int, image: int, label: int, polygon: Polygon) -> dict[str, Any]:
    """Return one annotation: the box is the smallest one around the polygon."""
    points = np.array(polygon)
    (x0, y0), (x1, y1) = points.min(0), points.max(0)
    nearby = np.roll(points, -1, 0)
    area = abs(float(np.sum(points[:, 0] * nearby[:, 1] - nearby[:, 0] * points[:, 1]))) / 2
    return {
        "id": number, "image_id": image, "category_id": label + 1, "iscrowd": 0, "area": area,
        "bbox": [float(x0), float(y0), float(x1 - x0), float(y1 - y0)],
        "segmentation": [[float(v) for point in polygon for v in point]],
    }  # fmt: skip


def _draw(rng: np.random.Generator) -> tuple[Image.Image, list[tuple[int, Polygon]]]:
    """Draw one image: noise of low contrast, and shapes that hardly overlap."""
    base = rng.uniform(60, 190, 3)
    coarse = (base + rng.normal(0, 18, (HEIGHT // 10, WIDTH // 10, 3))).clip(0, 255).astype(np.uint8)
    ground = Image.fromarray(coarse).resize((WIDTH * _OVERSAMPLED, HEIGHT * _OVERSAMPLED), Image.Resampling.BICUBIC)
    pen = ImageDraw.Draw(ground)
    shapes: list[tuple[int, Polygon]] = []
    taken: list[tuple[float, float, float, float]] = []
    for _ in range(int(rng.integers(1, _MOST_SHAPES + 1))):
        for _ in range(_ATTEMPTS):
            label, polygon, box = _shape(rng)
            if all(_apart(box, other) for other in taken):
                colour = _contrasting(rng, base)
                pen.polygon([(x * _OVERSAMPLED, y * _OVERSAMPLED) for x, y in polygon], fill=colour)
                shapes.append((label, polygon))
                taken.append(box)
                break
    image = np.asarray(ground.resize((WIDTH, HEIGHT), Image.Resampling.BOX), np.float64)
    noisy = (image + rng.normal(0, 5, image.shape)).clip(0, 255).astype(np.uint8)
    return Image.fromarray(noisy), shapes


def _shape(rng: np.random.Generator) -> tuple[int, Polygon, tuple[float, float, float, float]]:
    """Return a class, a polygon and the box around it."""
    label = int(rng.integers(len(CLASSES)))
    radius, turn = rng.uniform(14, 38), rng.uniform(-0.35, 0.35)
    if label == 0:
        corners = [(math.cos(2 * math.pi * k / 32), math.sin(2 * math.pi * k / 32)) for k in range(32)]
    elif label == 1:
        wide, high = rng.uniform(0.6, 1.0), rng.uniform(0.6, 1.0)
        corners = [(-wide, -high), (wide, -high), (wide, high), (-wide, high)]
    else:
        corners = [(0.0, -1.0), (0.95, 0.8), (-0.95, 0.8)]
    cos, sin = math.cos(turn), math.sin(turn)
    turned = np.array([(radius * (cos * x - sin * y), radius * (sin * x + cos * y)) for x, y in corners])
    low, high_corner = turned.min(0), turned.max(0)
    x = rng.uniform(-low[0] + 1, WIDTH - 1 - high_corner[0])
    y = rng.uniform(-low[1] + 1, HEIGHT - 1 - high_corner[1])
    polygon = [(round(float(px + x), 2), round(float(py + y), 2)) for px, py in turned]
    return label, polygon, (low[0] + x, low[1] + y, high_corner[0] + x, high_corner[1] + y)


def _apart(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    """Return whether two boxes overlap by less than a tenth of the smaller one."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    smaller = min((q[2] - q[0]) * (q[3] - q[1]) for q in (a, b))
    return width <= 0 or height <= 0 or width * height < 0.1 * smaller


def _contrasting(rng: np.random.Generator, base: Any) -> tuple[int, int, int]:
    """Return a colour that differs from the ground by at least 70 in one channel."""
    while True:
        colour = rng.integers(0, 256, 3)
        if np.abs(colour - base).max() >= 70:
            return int(colour[0]), int(colour[1]), int(colour[2])
