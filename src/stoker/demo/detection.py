# SPDX-License-Identifier: Apache-2.0
"""``stoker demo detection``: images with boxes and masks through the operators of detection, drawn on one sheet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

from stoker import eager, fn, pipeline_def

from . import shapes
from .sheet import Row, draw_sheet

ROWS = 6
SIZE = 300
COLUMNS = ("random_bbox_crop", "geometry", "mosaic", "copy_paste")
_SEED = 7
_IMAGES = 24
_COLOURS = ((255, 148, 64), (90, 200, 250), (160, 230, 90), (250, 110, 160), (250, 230, 90), (180, 140, 255))

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Sample:
    """Image with its objects.

    Attributes:
        image: uint8 (H, W, 3).
        boxes: x0, y0, x1, y1 in pixels, float32 (N, 4).
        masks: uint8 (N, H, W).
        labels: int32 (N,).
    """

    image: Array
    boxes: Array
    masks: Array
    labels: Array


def run(data: Path | None, annotations: Path | None, out: Path) -> Path:
    """Draw the sheet and return its path.

    Args:
        data: folder of images; None: shapes are drawn into ``out``.
        annotations: annotation file in COCO's form; by default ``annotations.json`` in the folder.
        out: folder that the sheet is written to.

    Raises:
        ArgumentError, DataError: the annotations or an image cannot be read.
        OSError: the operating system fails.
    """
    file = shapes.make(out / "shapes", _IMAGES, _SEED) if data is None else annotations or data / shapes.ANNOTATIONS
    samples = _read(str(data or file.parent), str(file))
    rows = [
        Row(f"objects: {len(one.boxes)}", "", drawn(one), [drawn(x) for x in _augmented(samples, i)])
        for i, one in enumerate(samples[:ROWS])
    ]
    path = out / "detection.png"
    text = f"Boxes and masks move with their images. {SIZE} x {SIZE}, seed {_SEED}."
    draw_sheet(rows, "Stoker: what the training of a detector gets to see", text, COLUMNS).save(path)
    return path


def _read(folder: str, annotations: str) -> list[Sample]:
    """Return samples on a canvas of one size."""

    @pipeline_def(batch_size=ROWS + 3, num_threads=2, seed=_SEED)
    def reading() -> Any:
        files, boxes, labels, polygons, vertices = fn.readers.coco(
            file_root=folder, annotations_file=annotations, ltrb=True, polygon_masks=True, skip_empty=True
        )
        return fn.decoders.image(files), boxes, labels, polygons, vertices

    found = []
    with reading() as pipe:
        outputs = pipe.run()
    for i in range(len(outputs[0])):
        image, boxes, labels, polygons, vertices = (np.asarray(column[i]) for column in outputs)
        height, width = image.shape[:2]
        fit = eager.transforms.scale(scale=(SIZE / width, SIZE / height))
        image, boxes, polygons, vertices, labels = eager.geometry(
            image, boxes=boxes, polygons=polygons, vertices=vertices, labels=labels, ops=[fit], size=(SIZE, SIZE)
        )
        found.append(Sample(image, boxes, _masks(len(boxes), polygons, vertices), labels))
    return found


def _masks(count: int, polygons: Array, vertices: Array) -> Array:
    """Return a mask for each object: 1 within its polygons."""
    masks = np.zeros((count, SIZE, SIZE), np.uint8)
    for number, first, end in polygons:
        own = Image.fromarray(masks[number])
        ImageDraw.Draw(own).polygon([(float(x), float(y)) for x, y in vertices[first:end]], fill=1)
        masks[number] = np.asarray(own)
    return masks


def _augmented(samples: list[Sample], number: int) -> list[Sample]:
    """Return sample ``number`` in the form of each column."""
    one = samples[number]
    others = [samples[(number + k) % len(samples)] for k in range(1, 4)]
    middle = (SIZE / 2, SIZE / 2)
    turn = eager.transforms.rotation(angle=25.0 - 10 * number, center=middle)
    wide = eager.transforms.scale(scale=(1.3, 1.1), center=middle)
    moved = eager.geometry(
        one.image, boxes=one.boxes, masks=one.masks, labels=one.labels, ops=[turn, wide], mask_layout="NHW",
        min_visibility=0.2, fill_value=40.0,
    )  # fmt: skip
    four = [one, *others]
    joined = eager.mosaic(
        *(x.image for x in four), boxes=[x.boxes for x in four], masks=[x.masks for x in four],
        labels=[x.labels for x in four], size=(SIZE, SIZE), center=(0.4 + 0.04 * number, 0.6 - 0.04 * number),
        mask_layout="NHW", min_visibility=0.2,
    )  # fmt: skip
    image, boxes, masks, labels = eager.copy_paste(
        one.image, others[0].image, masks=[one.masks, others[0].masks], labels=[one.labels, others[0].labels],
        min_visibility=0.2, seed=number,
    )  # fmt: skip
    return [_cropped(one, number), Sample(*moved), Sample(*joined), Sample(image, boxes, masks, labels)]


def _cropped(one: Sample, seed: int) -> Sample:
    """Return the window of SSD's training, resized."""
    anchor, shape, boxes, labels, index = eager.random_bbox_crop(
        np.clip(one.boxes / np.float32(SIZE), 0, 1), one.labels, aspect_ratio=(0.5, 2.0), scaling=(0.3, 1.0),
        thresholds=(0.0, 0.1, 0.3), num_attempts=50, allow_no_crop=False, output_bbox_indices=True, seed=seed,
    )  # fmt: skip
    (x0, y0), (width, height) = np.asarray(anchor) * SIZE, np.asarray(shape) * SIZE
    fit = eager.transforms.crop(
        from_start=(float(x0), float(y0)), from_end=(float(x0 + width), float(y0 + height)), to_end=(SIZE, SIZE)
    )
    image, masks = eager.geometry(one.image, masks=one.masks[index], ops=[fit], mask_layout="NHW")
    return Sample(image, boxes * np.float32(SIZE), masks, labels)


def drawn(one: Sample) -> Array:
    """Return the image with its masks in colour and its boxes outlined."""
    shown = one.image.astype(np.float32)
    for mask, label in zip(one.masks, one.labels, strict=True):
        shown[mask != 0] = 0.55 * shown[mask != 0] + 0.45 * np.array(_COLOURS[int(label) % len(_COLOURS)], np.float32)
    image = Image.fromarray(shown.astype(np.uint8))
    pen = ImageDraw.Draw(image)
    for box, label in zip(one.boxes, one.labels, strict=True):
        x0, y0, x1, y1 = (float(v) for v in box)
        pen.rectangle((x0, y0, max(x1 - 1, x0), max(y1 - 1, y0)), outline=_COLOURS[int(label) % len(_COLOURS)], width=3)
    return np.asarray(image)
