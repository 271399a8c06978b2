# SPDX-License-Identifier: Apache-2.0
"""Pipelines of the demonstration, and the training chain in Pillow and NumPy for comparison."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageOps

from stoker import Pipeline, fn, pipeline_def, types

from .._image_formats import open_image

SIZE = 224
MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]

SHEET_COLUMNS = ("random crop", "another draw", "crop, flip", "crop, colour", "rotate, crop", "all of them")

_AREA, _RATIO, _ATTEMPTS = (0.08, 1.0), (3 / 4, 4 / 3), 10


def training(files: Sequence[Path], labels: Sequence[int], *, batch_size: int, threads: int, seed: int) -> Pipeline:
    """Build the ImageNet training chain over a list of files: float32 (N, 3, 224, 224) and labels."""

    @pipeline_def(batch_size=batch_size, num_threads=threads, device_id=None, seed=seed)
    def chain() -> Any:
        jpegs, classes = fn.readers.file(
            files=[str(file) for file in files], labels=list(labels), random_shuffle=True, name="Reader"
        )
        images = fn.decoders.image_random_crop(jpegs, device="cpu", output_type=types.RGB)
        images = fn.resize(images, resize_x=SIZE, resize_y=SIZE)
        images = fn.crop_mirror_normalize(images, mean=MEAN, std=STD, mirror=fn.random.coin_flip())
        return images, classes

    return chain().build()


def augmentations(files: Sequence[Path], *, seed: int) -> Pipeline:
    """Build a pipeline for one batch of all files: decoded originals, and an output per column of the contact sheet."""

    @pipeline_def(batch_size=len(files), num_threads=1, device_id=None, seed=seed)
    def chain() -> Any:
        jpegs, _ = fn.readers.file(files=[str(file) for file in files], labels=list(range(len(files))))
        images = fn.decoders.image(jpegs, output_type=types.RGB)
        crops = [fn.random_resized_crop(images, size=[SIZE, SIZE], random_area=[0.2, 1.0]) for _ in range(4)]
        return images, crops[0], crops[1], fn.flip(crops[2]), _recolour(crops[3]), _turn(images), _everything(images)

    return chain().build()


def _recolour(images: Any) -> Any:
    return fn.color_twist(
        images,
        brightness=fn.random.uniform(range=[0.75, 1.3]),
        contrast=fn.random.uniform(range=[0.75, 1.3]),
        saturation=fn.random.uniform(range=[0.6, 1.5]),
        hue=fn.random.uniform(range=[-20.0, 20.0]),
    )


def _turn(images: Any) -> Any:
    """Rotate a crop that is wide enough to hide the area outside the image."""
    wide = fn.random_resized_crop(images, size=[320, 320], random_area=[0.35, 1.0])
    turned = fn.rotate(wide, angle=fn.random.uniform(range=[-20.0, 20.0]), keep_size=True, fill_value=0)
    return fn.crop(turned, crop=[SIZE, SIZE])


def _everything(images: Any) -> Any:
    return fn.flip(_recolour(_turn(images)), horizontal=fn.random.coin_flip())


class PillowChain:
    """Training chain in Pillow and NumPy, one image after the other, as in a plain script."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._mean = np.array(MEAN, np.float32)[:, np.newaxis, np.newaxis]
        self._scale = 1 / np.array(STD, np.float32)[:, np.newaxis, np.newaxis]

    def load(self, file: Path) -> npt.NDArray[np.float32]:
        """Return one training sample, float32 (3, 224, 224)."""
        with open_image(file) as opened:
            image = ImageOps.exif_transpose(opened).convert("RGB")
        image = image.resize((SIZE, SIZE), Image.Resampling.BILINEAR, self._window(*image.size))
        if self._rng.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        pixels = np.asarray(image, np.float32).transpose(2, 0, 1)
        return np.ascontiguousarray((pixels - self._mean) * self._scale)

    def _window(self, width: int, height: int) -> tuple[int, int, int, int]:
        """Return the box of a random resized crop, with torchvision's usual distribution."""
        for _ in range(_ATTEMPTS):
            area = width * height * self._rng.uniform(*_AREA)
            ratio = math.exp(self._rng.uniform(math.log(_RATIO[0]), math.log(_RATIO[1])))
            w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
            if 0 < w <= width and 0 < h <= height:
                x, y = self._rng.randint(0, width - w), self._rng.randint(0, height - h)
                return x, y, x + w, y + h
        return 0, 0, width, height
