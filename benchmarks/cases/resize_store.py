# SPDX-License-Identifier: Apache-2.0
"""From decoded pixels to a training tensor: resize the mean window of a random resized crop, normalise, store."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.case import MS_PER_IMAGE, Bar, Case, Contender, Loop
from benchmarks.data import Data, mean_window
from benchmarks.library import DALI, STOKER, consume, load

ORDER = 20
BATCH = 128
MEAN = np.array([0.485, 0.456, 0.406], np.float32) * np.float32(255)
STD = np.array([0.229, 0.224, 0.225], np.float32) * np.float32(255)


def decoded_windows(data: Data) -> np.ndarray:
    """Return a batch of mean windows, uint8 (N, H, W, 3), from the centres of photographs that are large enough."""
    from PIL import Image

    height, width = mean_window()
    windows = np.empty((BATCH, height, width, 3), np.uint8)
    filled = 0
    while filled < BATCH:
        before = filled
        for path in data.files:
            with Image.open(path) as image:
                x, y = (image.width - width) // 2, (image.height - height) // 2
                if x >= 0 and y >= 0 and filled < BATCH:
                    windows[filled] = np.asarray(image.convert("RGB").crop((x, y, x + width, y + height)))
                    filled += 1
        if filled == before:
            raise ValueError(f"{data.root} holds no image of {width}x{height} pixels or more.")
    return windows


def run_pipeline(data: Data, *, library: str) -> Loop:
    """Run `external_source`, `resize` and `crop_mirror_normalize`."""
    windows = decoded_windows(data)
    lib = load(library)
    fn, types = lib.fn, lib.types

    @lib.pipeline_def(batch_size=BATCH, num_threads=1, device_id=None)
    def chain() -> Any:
        images = fn.external_source(source=lambda: windows, batch=True, no_copy=True, layout="HWC")
        images = fn.resize(images, resize_x=224, resize_y=224)
        return fn.crop_mirror_normalize(
            images, dtype=types.FLOAT, output_layout="CHW", mean=MEAN.tolist(), std=STD.tolist()
        )

    pipeline = chain()
    pipeline.build()
    return Loop(lambda: (BATCH, consume(pipeline.run())))


def run_pillow(data: Data) -> Loop:
    """Run Pillow's `resize` and NumPy's arithmetic into an existing batch."""
    from PIL import Image

    windows = [Image.fromarray(window) for window in decoded_windows(data)]
    out = np.empty((BATCH, 3, 224, 224), np.float32)
    mean, scale = MEAN[:, np.newaxis, np.newaxis], 1 / STD[:, np.newaxis, np.newaxis]

    def step() -> tuple[int, float]:
        for window, target in zip(windows, out, strict=True):
            pixels = np.asarray(window.resize((224, 224), Image.Resampling.BILINEAR))
            np.subtract(pixels.transpose(2, 0, 1), mean, out=target)
            target *= scale
        return BATCH, float(out.reshape(-1)[::509].sum())

    return Loop(step, warm=1)


CASES = (
    Case(
        "resize-store",
        "Resize, normalise, store from decoded pixels, one core",
        MS_PER_IMAGE,
        (
            Contender("stoker", "run_pipeline", {"library": STOKER}, cores=1),
            Contender("DALI", "run_pipeline", {"library": DALI}, "peers", cores=1),
            Contender("Pillow + NumPy", "run_pillow", environment="peers", cores=1),
        ),
        (Bar("time per image", "stoker", at_most=0.25),),
        note=f"{mean_window()[1]}x{mean_window()[0]} uint8 RGB, the mean window of a random resized crop of a 500x375 "
        "photograph, to 224x224 float32 CHW, bilinear with antialiasing. 128 different windows: input and output of a "
        "batch together are larger than the processor's cache.",
    ),
)
