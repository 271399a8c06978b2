# SPDX-License-Identifier: Apache-2.0
"""Pipelines of the detection example: SSD's training chain, and the chain of the evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np

from stoker import fn, pipeline_def, types

SIZE = 96
MEAN, STD = [127.5] * 3, [63.75] * 3
VARIANCES = (0.1, 0.1, 0.2, 0.2)  # of offsets, as in SSD
GRIDS = ((12, 0.2), (6, 0.35), (3, 0.55))  # cells along an axis, side of the anchors
RATIOS = (1.0, 2.0, 0.5)


def anchors() -> np.ndarray:
    """Return the anchors as left, top, right, bottom from 0 to 1, cell by cell: float32 (M, 4)."""
    found = []
    for i, (cells, side) in enumerate(GRIDS):
        larger = GRIDS[i + 1][1] if i + 1 < len(GRIDS) else 0.75
        sides = [(side * r**0.5, side / r**0.5) for r in RATIOS] + [((side * larger) ** 0.5,) * 2]
        for y in range(cells):
            for x in range(cells):
                cx, cy = (x + 0.5) / cells, (y + 0.5) / cells
                found += [(cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2) for w, h in sides]
    return np.array(found, np.float32)


@pipeline_def
def training(folder: str, annotations: str, device: str = "cpu") -> Any:
    """Return images (3, SIZE, SIZE) float32, and a box offset and a label for each anchor (Liu et al., "SSD", 2016)."""
    files, boxes, labels = fn.readers.coco(
        file_root=folder, annotations_file=annotations, ratio=True, ltrb=True, skip_empty=True, random_shuffle=True,
        name="coco",
    )  # fmt: skip
    anchor, shape, boxes, labels = fn.random_bbox_crop(
        boxes, labels, aspect_ratio=[0.5, 2.0], thresholds=[0, 0.1, 0.3, 0.5, 0.7, 0.9], scaling=[0.3, 1.0],
        bbox_layout="xyXY", num_attempts=50,
    )  # fmt: skip
    images = fn.decoders.image_slice(files, anchor, shape, device="mixed" if device == "gpu" else "cpu")
    images = fn.resize(images, size=(SIZE, SIZE))
    images = fn.hsv(
        images,
        dtype=types.FLOAT,
        hue=fn.random.uniform(range=(-18, 18)),
        saturation=fn.random.uniform(range=(0.6, 1.4)),
    )
    images = fn.brightness_contrast(
        images, contrast_center=128, dtype=types.UINT8, brightness=fn.random.uniform(range=(0.8, 1.2)),
        contrast=fn.random.uniform(range=(0.7, 1.3)),
    )  # fmt: skip
    coin = fn.random.coin_flip(probability=0.5)
    images = fn.crop_mirror_normalize(images, mirror=coin, mean=MEAN, std=STD, dtype=types.FLOAT, output_layout="CHW")
    boxes = fn.bb_flip(boxes, ltrb=True, horizontal=coin)
    offsets, targets = fn.box_encoder(boxes, labels, anchors=anchors().ravel(), offset=True, stds=VARIANCES)
    return images, offsets, targets


@pipeline_def
def evaluation(folder: str, annotations: str) -> Any:
    """Return whole images (3, SIZE, SIZE) float32, the same as uint8 (SIZE, SIZE, 3), relative boxes and labels."""
    files, boxes, labels = fn.readers.coco(
        file_root=folder, annotations_file=annotations, ratio=True, ltrb=True, name="coco"
    )
    images = fn.resize(fn.decoders.image(files), size=(SIZE, SIZE))
    return fn.crop_mirror_normalize(images, mean=MEAN, std=STD, output_layout="CHW"), images, boxes, labels
