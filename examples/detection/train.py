# SPDX-License-Identifier: Apache-2.0
"""Train a small SSD on a folder in COCO's form, or on drawn shapes, and draw what it finds.

python examples/detection/train.py                          # makes its data; minutes on two cores
python examples/detection/train.py --data FOLDER --annotations FILE.json
python examples/detection/train.py --fast                   # a short check
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image, ImageDraw

sys.path.insert(0, str(Path(__file__).parent))
import chain
import model as ssd

import stoker.torch
from stoker.demo import shapes

COLOURS = ((255, 148, 64), (90, 200, 250), (160, 230, 90), (250, 110, 160), (250, 230, 90), (180, 140, 255))


THRESHOLDS = np.linspace(0.5, 0.95, 10).astype(np.float32)  # of the IoU, as COCO's
LEAST_SHOWN = 0.4  # score of objects that are drawn


@dataclass(frozen=True)
class Data:
    """Images for training and evaluation.

    Attributes:
        train, test: folder and annotation file.
        names: classes.
        epochs: default number of epochs.
        is_drawn: whether the example drew the images.
    """

    train: tuple[str, str]
    test: tuple[str, str]
    names: list[str]
    epochs: int
    is_drawn: bool

    @property
    def note(self) -> str:
        """Return where the evaluation takes place."""
        return "on images that it has not seen" if self.is_drawn else "on the training data"


def main() -> int:
    """Train, evaluate and draw. Return 1 if the drawn shapes are not learned: mAP of at most 0.5."""
    options = arguments("Train a small SSD.", epochs=25).parse_args()
    data = prepare(options)
    detector = ssd.SmallSSD(len(data.names))
    pipe = chain.training(*data.train, batch_size=16, num_threads=options.threads, seed=1)
    fit(detector, pipe, options.epochs or data.epochs, lambda images, *truth: ssd.loss(*detector(images), *truth))
    half, whole = evaluate(detector, data, options)
    print(f"mAP at IoU 0.5: {half:.3f}; mean over IoU 0.5 to 0.95: {whole:.3f}, {data.note}")
    return int(data.is_drawn and not options.fast and half <= 0.5)


def arguments(description: str, epochs: int) -> argparse.ArgumentParser:
    """Return the parser of the arguments; ``epochs``: default number of epochs."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path, help="folder of images; by default shapes are drawn")
    parser.add_argument("--annotations", type=Path, help="annotation file of --data; default: annotations.json there")
    parser.add_argument("--out", type=Path, default=Path("detection-out"), help="where to write; ./detection-out")
    parser.add_argument("--epochs", type=int, help=f"epochs; default: {epochs}, with --fast 2")
    parser.add_argument("--threads", type=int, default=2, help="threads of the pipeline")
    parser.add_argument("--torch-threads", type=int, default=1, help="threads of torch; small layers gain little")
    parser.add_argument("--fast", action="store_true", help="less data and two epochs, which learn little")
    parser.set_defaults(usual_epochs=epochs)
    return parser


def prepare(options: argparse.Namespace) -> Data:
    """Set up torch, and return the data. Draw shapes if the user has no data."""
    torch.manual_seed(1)
    torch.set_num_threads(options.torch_threads)
    if options.data is None:
        train_file = shapes.make(options.out / "train", 96 if options.fast else 600, seed=1)
        test_file = shapes.make(options.out / "test", 40 if options.fast else 150, seed=2)
    else:
        options.out.mkdir(parents=True, exist_ok=True)
        train_file = test_file = options.annotations or options.data / "annotations.json"
    names = [c["name"] for c in json.loads(train_file.read_text())["categories"]]
    train, test = ((str(options.data or file.parent), str(file)) for file in (train_file, test_file))
    return Data(train, test, names, 2 if options.fast else options.usual_epochs, options.data is None)


def fit(model: torch.nn.Module, pipe: Any, epochs: int, loss: Callable[..., torch.Tensor]) -> None:
    """Train a model for some epochs; ``loss`` takes the outputs of the pipeline."""
    loader = stoker.torch.Loader(pipe, last_batch_policy="drop")
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=epochs * len(loader))
    begin = time.perf_counter()
    for epoch in range(epochs):
        total = 0.0
        for batch in loader:
            value = loss(*batch)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            schedule.step()
            total += value.item()
        print(f"epoch {epoch + 1}: loss {total / len(loader):.3f}, {time.perf_counter() - begin:.0f} s", flush=True)
    model.eval()


def evaluate(detector: ssd.SmallSSD, data: Data, options: argparse.Namespace) -> tuple[float, float]:
    """Return mAP at IoU 0.5 and its mean over COCO's ten thresholds. Draw the first detections."""
    pipe = chain.evaluation(*data.test, batch_size=20, num_threads=options.threads, seed=1)
    found, truth, pictures = [], [], []
    for images, shown, boxes, labels in stoker.torch.Loader(pipe, last_batch_policy="partial"):
        for detections, picture, own, label in zip(detector.detect(images), shown, boxes, labels, strict=True):
            found.append(tuple(x.numpy() for x in detections))
            truth.append((own.numpy(), np.atleast_1d(label.numpy())))
            if len(pictures) < 12:
                pictures.append(drawn(picture.numpy(), *found[-1], data.names))
    path = options.out / "detections.png"
    sheet(pictures).save(path)
    print(f"detections: {path}")
    precisions = [ssd.average_precision(found, truth, len(data.names), t) for t in THRESHOLDS]
    return precisions[0], float(np.mean(precisions))


def drawn(
    picture: np.ndarray, boxes: np.ndarray, scores: np.ndarray, labels: np.ndarray, names: list[str]
) -> Image.Image:
    """Return a picture, twice as large, with its detections."""
    image = Image.fromarray(picture).resize((2 * picture.shape[1], 2 * picture.shape[0]))
    pen = ImageDraw.Draw(image)
    for box, score, label in zip(boxes * image.width, scores, labels, strict=True):
        if score >= LEAST_SHOWN:
            colour = COLOURS[int(label) % len(COLOURS)]
            pen.rectangle([float(v) for v in box], outline=colour, width=2)
            pen.text((float(box[0]) + 3, float(box[1]) + 1), f"{names[int(label) - 1]} {score:.2f}", fill=colour)
    return image


def sheet(pictures: list[Image.Image], columns: int = 4) -> Image.Image:
    """Return pictures of one size in rows."""
    width, height = pictures[0].size
    whole = Image.new("RGB", (columns * width, -(-len(pictures) // columns) * height))
    for i, picture in enumerate(pictures):
        whole.paste(picture, (i % columns * width, i // columns * height))
    return whole


if __name__ == "__main__":
    sys.exit(main())
