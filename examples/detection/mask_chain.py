# SPDX-License-Identifier: Apache-2.0
"""Pipelines of instance segmentation: images with their boxes, labels and a mask for each object."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from stoker import fn, pipeline_def

from chain import MEAN, SIZE, STD, VARIANCES, anchors  # isort: skip


def _read(folder: str, annotations: str, **arguments: Any) -> tuple[Any, ...]:
    """Return images of SIZE x SIZE, and their boxes, labels, polygons and vertices, relative to the image."""
    files, boxes, labels, polygons, vertices = fn.readers.coco(
        file_root=folder, annotations_file=annotations, ratio=True, ltrb=True, polygon_masks=True, skip_empty=True,
        include_iscrowd=False, name="coco", **arguments,
    )  # fmt: skip
    return fn.resize(fn.decoders.image(files), size=(SIZE, SIZE)), boxes, labels, polygons, vertices


def _augmentation() -> list[Any]:
    """Return matrices that zoom, turn, move and mirror the image."""
    middle = (SIZE / 2, SIZE / 2)
    mirror = 1 - 2 * fn.random.coin_flip(probability=0.5)
    return [
        fn.transforms.scale(scale=fn.random.uniform(range=(0.8, 1.5), shape=(2,)), center=middle),
        fn.transforms.rotation(angle=fn.random.uniform(range=(-15, 15)), center=middle),
        fn.transforms.translation(offset=fn.random.uniform(range=(-0.15 * SIZE, 0.15 * SIZE), shape=(2,))),
        fn.transforms.scale(scale=fn.stack(mirror, fn.cast_like(1, mirror)), center=middle),
    ]


@pipeline_def
def training(folder: str, annotations: str, moved: str = "polygons") -> Any:
    """Return images (3, SIZE, SIZE) float32, an offset and a label for each anchor, and the objects that are left:
    boxes (N, 4) relative to the image, labels (N,), masks (N, SIZE, SIZE) uint8.

    Args:
        folder: images.
        annotations: file in COCO's form.
        moved: "polygons": masks are painted from the moved polygons, whose edges are exact. "masks": masks are painted
            first and moved as pixels, as masks without polygons would be.
    """
    images, boxes, labels, polygons, vertices = _read(folder, annotations, random_shuffle=True)
    shared = {"normalized": True, "size": (SIZE, SIZE), "min_visibility": 0.3, "fill_value": 127.0}
    matrices = _augmentation()
    if moved == "polygons":
        images, boxes, polygons, vertices, labels = fn.geometry(
            images, boxes=boxes, polygons=polygons, vertices=vertices, labels=labels, ops=matrices, **shared
        )
        masks = fn.segmentation.polygon_masks(polygons, vertices * float(SIZE), boxes, images)
    else:
        masks = fn.segmentation.polygon_masks(polygons, vertices * float(SIZE), boxes, images)
        images, boxes, masks, labels = fn.geometry(
            images, boxes=boxes, masks=masks, labels=labels, ops=matrices, mask_layout="NHW", **shared
        )
    images = fn.color_twist(
        images, brightness=fn.random.uniform(range=(0.8, 1.2)), contrast=fn.random.uniform(range=(0.8, 1.2)),
        saturation=fn.random.uniform(range=(0.6, 1.4)), hue=fn.random.uniform(range=(-18, 18)),
    )  # fmt: skip
    images = fn.crop_mirror_normalize(images, mean=MEAN, std=STD, output_layout="CHW")
    offsets, targets = fn.box_encoder(boxes, labels, anchors=anchors().ravel(), offset=True, stds=VARIANCES)
    return images, offsets, targets, boxes, labels, masks


@pipeline_def
def evaluation(folder: str, annotations: str) -> Any:
    """Return whole images (3, SIZE, SIZE) float32, the same as uint8 (SIZE, SIZE, 3), relative boxes, labels, masks."""
    images, boxes, labels, polygons, vertices = _read(folder, annotations)
    masks = fn.segmentation.polygon_masks(polygons, vertices * float(SIZE), boxes, images)
    return fn.crop_mirror_normalize(images, mean=MEAN, std=STD, output_layout="CHW"), images, boxes, labels, masks


def mask_rcnn_batch(images: Any, boxes: Any, labels: Any, masks: Any) -> tuple[list[Tensor], list[dict[str, Tensor]]]:
    """Return a batch in the form of torchvision's ``MaskRCNN``: ``model(images, targets)``.

    Args:
        images: a tensor (3, H, W) for each image.
        boxes: for each image (N, 4) relative to it.
        labels: for each image (N,), from 1.
        masks: for each image (N, H, W), uint8.

    Returns:
        The images, and for each a dict of boxes (N, 4) in pixels, labels int64 (N,) and masks (N, H, W) uint8.
    """
    targets = []
    for image, own, label, mask in zip(images, boxes, labels, masks, strict=True):
        height, width = image.shape[1:]
        pixels = own.reshape(-1, 4) * own.new_tensor((width, height, width, height))
        targets.append({"boxes": pixels, "labels": torch.atleast_1d(label).long(), "masks": mask})
    return list(images), targets
