# SPDX-License-Identifier: Apache-2.0
"""One training in four frameworks: the same batches bit for bit, and the same losses but for rounding."""

from __future__ import annotations

import argparse
import hashlib
import importlib
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import models

from stoker import fn, pipeline_def

BATCH_SIZE = 8
SIZE = 24


@pipeline_def(batch_size=BATCH_SIZE, num_threads=2, device_id=None, seed=11)
def training(folder: str) -> Any:
    """Return shuffled, augmented, normalized images (HWC, float32) and their labels."""
    jpegs, labels = fn.readers.file(file_root=folder, random_shuffle=True)
    images = fn.random_resized_crop(fn.decoders.image(jpegs), size=(SIZE, SIZE))
    images = fn.crop_mirror_normalize(
        images, mean=[127.5] * 3, std=[64.0] * 3, mirror=fn.random.coin_flip(), output_layout="HWC"
    )
    return images, labels


@dataclass
class Run:
    """Losses of a training, one per step, and a checksum of the batches."""

    losses: list[float] = field(default_factory=list)
    checksum: str = ""


def train(framework: str, folder: str, epochs: int = 2) -> Run:
    """Train the framework's network on the folder's images.

    Args:
        framework: "numpy", "torch", "jax", "tf" or "paddle".
        folder: images, in a sub-folder per class.
        epochs: number of epochs.
    """
    loader = importlib.import_module(f"stoker.{framework}").Loader(training(folder), last_batch_policy="drop")
    model = models.MODELS[framework](SIZE * SIZE * 3, sum(path.is_dir() for path in Path(folder).iterdir()))
    run, batches = Run(), hashlib.sha256()
    for _ in range(epochs):
        for images, labels in loader:
            batches.update(np.asarray(images).tobytes())
            batches.update(np.asarray(labels).astype(np.int64).tobytes())  # JAX's labels are int32
            run.losses.append(model.step(images, labels))
    loader.close()
    run.checksum = batches.hexdigest()
    return run


def main() -> None:
    """Train with the framework that the command line names; print the losses and the checksum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("framework", choices=sorted(models.MODELS))
    parser.add_argument("--data", required=True, help="folder of images, with a sub-folder per class")
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    run = train(options.framework, options.data, options.epochs)
    for step, loss in enumerate(run.losses):
        print(f"step {step:3}: loss {loss:.6f}")
    print(f"batches: sha256 {run.checksum}")


if __name__ == "__main__":
    main()
