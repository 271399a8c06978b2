# SPDX-License-Identifier: Apache-2.0
"""Benchmark files, and the windows of random resized crops. Imports only the standard library."""

from __future__ import annotations

import math
import os
import random
from functools import cached_property

Window = tuple[int, int, int, int]

_SUFFIXES = (".jpg", ".jpeg")
_SCALE = (0.08, 1.0)
_RATIO = (3 / 4, 4 / 3)
_ATTEMPTS = 10


class Data:
    """Folder of JPEG files, flat or nested, in a fixed order."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = os.fspath(root)

    @cached_property
    def files(self) -> list[str]:
        """Return the paths of the files, sorted."""
        found = [
            os.path.join(folder, name)
            for folder, _, names in os.walk(self.root)
            for name in names
            if name.lower().endswith(_SUFFIXES)
        ]
        if not found:
            raise FileNotFoundError(f"{self.root} holds no JPEG files.")
        return sorted(found)

    @cached_property
    def labels(self) -> list[int]:
        """Return a label for each file: its index, so that a checksum of labels identifies the files of a batch."""
        return list(range(len(self.files)))

    def read(self) -> list[bytes]:
        """Return the bytes of all files; the first call loads them into the page cache."""
        contents = []
        for path in self.files:
            with open(path, "rb") as file:
                contents.append(file.read())
        return contents


def random_window(rng: random.Random, width: int, height: int) -> Window:
    """Draw the window (x0, y0, x1, y1) of a random resized crop, with the default distribution of torchvision and DALI.

    Source: Szegedy et al., "Going deeper with convolutions" (2015), as `torchvision.transforms.RandomResizedCrop`.
    """
    for _ in range(_ATTEMPTS):
        area = width * height * rng.uniform(*_SCALE)
        ratio = math.exp(rng.uniform(math.log(_RATIO[0]), math.log(_RATIO[1])))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            x, y = rng.randint(0, width - w), rng.randint(0, height - h)
            return x, y, x + w, y + h
    w = min(width, round(height * _RATIO[1]))
    h = min(height, round(width / _RATIO[0]))
    x, y = (width - w) // 2, (height - h) // 2
    return x, y, x + w, y + h


def mean_window(width: int = 500, height: int = 375, draws: int = 20_000) -> tuple[int, int]:
    """Return the (height, width) of a window with the mean area and aspect of the random ones."""
    rng = random.Random(0)
    windows = [random_window(rng, width, height) for _ in range(draws)]
    mean_w = sum(x1 - x0 for x0, _, x1, _ in windows) / draws
    mean_h = sum(y1 - y0 for _, y0, _, y1 in windows) / draws
    mean_area = sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in windows) / draws
    stretch = math.sqrt(mean_area / (mean_w * mean_h))
    return round(mean_h * stretch), round(mean_w * stretch)
