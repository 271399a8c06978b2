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
from pathlib import Path

import numpy as np
import torch
from PIL import Image, ImageDraw

sys.path.insert(0, str(Path(__file__).parent))
import chain
import model as ssd

import stoker.torch
from stoker.demo import shapes

COLOURS = ((255, 148, 64), (90, 200, 250), (160, 230, 90), (250, 110, 160), (250, 230, 90), (180, 140, 255))


def main() -> int:
    """Train, evaluate and draw. Return 1 if the drawn shapes are not learned: mAP of at most 0.5."""
    parser = argparse.ArgumentParser(description="Train a small SSD.")
    parser.add_argument("--data", type=Path, help="folder of images; by default shapes are drawn")
    parser.add_argument("--annotations", type=Path, help="annotation file of --data; default: annotations.json there")
    parser.add_argument("--out", type=Path, default=Path("detection-out"), help="where to write; ./detection-out")
    parser.add_argument("--epochs", type=int, help="epochs; default: 25, with --fast 2")
    parser.add_argument("--threads", type=int, default=2, help="threads of the pipeline")
    parser.add_argument("--torch-threads", type=int, default=1, help="threads of torch; small layers gain little")
    parser.add_argument("--fast", action="store_true", help="less data and two epochs, which learn little")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(options.torch_threads)
    if options.data is None:
        train_file = shapes.make(options.out / "train", 96 if options.fast else 600, seed=1)
        test_file = shapes.make(options.out / "test", 40 if options.fast else 150, seed=2)
    else:
        train_file = test_file = options.annotations or options.data / "annotations.json"
    names = [c["name"] for c in json.loads(train_file.read_text())["categories"]]
    folders = [str(options.data or path.parent) for path in (train_file, test_file)]
    detector = train(folders[0], str(train_file), len(names), options.epochs or (2 if options.fast else 25), options)
    half, whole = evaluate(detector, folders[1], str(test_file), names, options)
    where = "the training data" if options.data else "images that it has not seen"
    print(f"mAP at IoU 0.5: {half:.3f}; mean over IoU 0.5 to 0.95: {whole:.3f}, on {where}")
    return int(options.data is None and not options.fast and half <= 0.5)


def train(folder: str, annotations: str, classes: int, epochs: int, options: argparse.Namespace) -> ssd.SmallSSD:
    """Return a detector that was trained for some epochs."""
    pipe = chain.training(folder, annotations, batch_size=16, num_threads=options.threads, seed=1)
    loader = stoker.torch.Loader(pipe, last_batch_policy="drop")
    detector = ssd.SmallSSD(classes)
    steps = epochs * len(loader)
    optimizer = torch.optim.AdamW(detector.parameters(), lr=2e-3, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    begin = time.perf_counter()
    for epoch in range(epochs):
        total = 0.0
        for images, targets, labels in loader:
            loss = ssd.loss(*detector(images), targets, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: loss {total / len(loader):.3f}, {time.perf_counter() - begin:.0f} s", flush=True)
    return detector.eval()


def evaluate(
    detector: ssd.SmallSSD, folder: str, annotations: str, names: list[str], options: argparse.Namespace
) -> tuple[float, float]:
    """Return mAP at IoU 0.5 and its mean over COCO's ten thresholds. Draw the first detections."""
    pipe = chain.evaluation(folder, annotations, batch_size=20, num_threads=options.threads, seed=1)
    found, truth, pictures = [], [], []
    for images, shown, boxes, labels in stoker.torch.Loader(pipe, last_batch_policy="partial"):
        for detections, picture, own, label in zip(detector.detect(images), shown, boxes, labels, strict=True):
            found.append(tuple(x.numpy() for x in detections))
            truth.append((own.numpy(), np.atleast_1d(label.numpy())))
            if len(pictures) < 12:
                pictures.append(drawn(picture.numpy(), *found[-1], names))
    path = options.out / "detections.png"
    sheet(pictures).save(path)
    print(f"detections: {path}")
    precisions = [
        ssd.average_precision(found, truth, len(names), t) for t in np.linspace(0.5, 0.95, 10).astype(np.float32)
    ]
    return precisions[0], float(np.mean(precisions))


def drawn(
    picture: np.ndarray, boxes: np.ndarray, scores: np.ndarray, labels: np.ndarray, names: list[str]
) -> Image.Image:
    """Return a picture, twice as large, with its detections."""
    image = Image.fromarray(picture).resize((2 * picture.shape[1], 2 * picture.shape[0]))
    pen = ImageDraw.Draw(image)
    for box, score, label in zip(boxes * image.width, scores, labels, strict=True):
        if score >= 0.4:
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
