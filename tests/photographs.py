# SPDX-License-Identifier: Apache-2.0
"""Synthetic photographs: seeded, small, with features that matter to codecs."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image

CLASSES = ("field", "river", "tower")
PER_CLASS = 8


def photograph(seed: int, height: int, width: int) -> npt.NDArray[np.uint8]:
    """Return an image with features that matter to codecs: smooth gradients, edges, texture, noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    phase = rng.uniform(0, 6.28, 3)
    waves = np.stack([np.sin(x / rng.uniform(9, 40) + y / rng.uniform(9, 40) + p) for p in phase], -1)
    ramp = np.stack([x / width, y / height, 1 - x / width], -1)
    picture = 255 * (0.55 * ramp + 0.2 * waves + 0.2)
    top, left = rng.integers(0, height // 2), rng.integers(0, width // 2)
    picture[top : top + height // 3, left : left + width // 3] += rng.uniform(-90, 90, 3)
    return np.clip(picture + rng.normal(0, 6, picture.shape), 0, 255).astype(np.uint8)


def write_photographs(root: Path, per_class: int = PER_CLASS) -> Path:
    """Write JPEG files of several sizes, qualities and samplings, some gray or progressive, in a folder per class."""
    for c, name in enumerate(CLASSES):
        (root / name).mkdir(parents=True, exist_ok=True)
        for i in range(per_class):
            seed = c * per_class + i
            image = Image.fromarray(photograph(seed, 90 + 13 * (seed % 7), 120 + 17 * (seed % 5)))
            image = image.convert("L") if seed % 7 == 6 else image
            options = {"quality": 60 + 5 * (seed % 8), "progressive": seed % 5 == 4}
            sampling = {} if image.mode == "L" else {"subsampling": seed % 3}
            image.save(root / name / f"{name}_{i:03}.jpg", "JPEG", **options, **sampling)
    return root


if __name__ == "__main__":
    print(*(str(path) for path in sorted(write_photographs(Path(sys.argv[1])).rglob("*.jpg"))))
