# SPDX-License-Identifier: Apache-2.0
"""Train a small model for instance segmentation on a folder in COCO's form, or on drawn shapes, and draw what it finds.

python examples/detection/train_masks.py                          # makes its data; minutes on two cores
python examples/detection/train_masks.py --data FOLDER --annotations FILE.json
python examples/detection/train_masks.py --fast                   # a short check
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))
import mask_chain
import mask_model
import model as ssd
import train

import stoker.torch


def main() -> int:
    """Train, evaluate and draw. Return 1 if the drawn shapes are not learned: mAP of masks of at most 0.5."""
    options = train.arguments("Train a small model for instance segmentation.", epochs=30).parse_args()
    data = train.prepare(options)
    model = mask_model.MaskSSD(len(data.names))
    pipe = mask_chain.training(*data.train, batch_size=16, num_threads=options.threads, seed=1)

    def loss(images: torch.Tensor, offsets: torch.Tensor, targets: torch.Tensor, *truth: list) -> torch.Tensor:
        _, objects = mask_chain.mask_rcnn_batch(images, *truth)
        relative = [x["boxes"] / mask_chain.SIZE for x in objects]
        masks = mask_model.mask_loss(
            model, images, relative, [x["labels"] for x in objects], [x["masks"] for x in objects]
        )
        return ssd.loss(*model(images), offsets, targets) + 2 * masks

    train.fit(model, pipe, options.epochs or data.epochs, loss)
    precisions = evaluate(model, data, options)
    half, whole = precisions[0], np.mean(precisions)
    print(f"mAP of masks at IoU 0.5: {half:.3f}; mean over IoU 0.5 to 0.95: {whole:.3f}, {data.note}")
    return int(data.is_drawn and not options.fast and half <= 0.5)


def evaluate(model: mask_model.MaskSSD, data: train.Data, options: argparse.Namespace) -> list[float]:
    """Return the mAP of masks at COCO's ten thresholds. Draw the first objects."""
    pipe = mask_chain.evaluation(*data.test, batch_size=20, num_threads=options.threads, seed=1)
    found, truth, pictures = [], [], []
    for images, shown, _, labels, masks in stoker.torch.Loader(pipe, last_batch_policy="partial"):
        for own, picture, label, mask in zip(model.instances(images), shown, labels, masks, strict=True):
            found.append((own.masks.numpy(), own.scores.numpy(), own.labels.numpy()))
            truth.append((mask.numpy(), np.atleast_1d(label.numpy())))
            if len(pictures) < 12:
                pictures.append(drawn(picture.numpy(), own, data.names))
    path = options.out / "instances.png"
    train.sheet(pictures).save(path)
    print(f"instances: {path}")
    return [ssd.average_precision(found, truth, len(data.names), t, mask_model.mask_overlap) for t in train.THRESHOLDS]


def drawn(picture: np.ndarray, own: mask_model.Instances, names: list[str]) -> Image.Image:
    """Return a picture, twice as large, with its objects: masks in colour, boxes outlined."""
    tinted = picture.astype(np.float32)
    for mask, score, label in zip(own.masks.numpy(), own.scores, own.labels, strict=True):
        if score >= train.LEAST_SHOWN:
            tinted[mask] = 0.5 * tinted[mask] + 0.5 * np.array(train.COLOURS[int(label) % len(train.COLOURS)])
    return train.drawn(tinted.astype(np.uint8), own.boxes.numpy(), own.scores.numpy(), own.labels.numpy(), names)


if __name__ == "__main__":
    sys.exit(main())
