# SPDX-License-Identifier: Apache-2.0
"""Made videos with known motion: random patterns that move, turn or grow. A single frame does not show the class."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np

SIZE, FRAMES, RATE = 48, 24, 25
# Per frame: movement to the right and down in pixels, turn in degrees, growth.
MOTIONS = {
    "clockwise": (0, 0, 5, 0), "counterclockwise": (0, 0, -5, 0), "down": (0, 1.6, 0, 0), "grow": (0, 0, 0, 0.04),
    "left": (-1.6, 0, 0, 0), "right": (1.6, 0, 0, 0), "shrink": (0, 0, 0, -0.04), "up": (0, -1.6, 0, 0),
}  # fmt: skip
_WAVES = 7


def frames(motion: str, rng: np.random.Generator) -> np.ndarray:
    """Return a video of a motion, uint8 ``(FRAMES, SIZE, SIZE, 3)``."""
    right, down, turn, growth = np.array(MOTIONS[motion]) * rng.uniform(0.8, 1.2)
    directions, lengths = rng.uniform(0, 2 * np.pi, _WAVES), rng.uniform(9, 26, _WAVES)
    waves = 2 * np.pi / lengths * np.stack([np.cos(directions), np.sin(directions)])
    phases, heights = rng.uniform(0, 2 * np.pi, _WAVES), rng.normal(0, 28, (_WAVES, 3))
    y, x = np.mgrid[:SIZE, :SIZE] - (SIZE - 1) / 2
    shown = []
    for t in np.arange(FRAMES) - FRAMES / 2:
        angle, scale = np.deg2rad(turn * t), np.exp(-growth * t)
        u = scale * (np.cos(angle) * x + np.sin(angle) * y) - right * t
        v = scale * (np.cos(angle) * y - np.sin(angle) * x) - down * t
        values = 128 + np.sin(u[..., None] * waves[0] + v[..., None] * waves[1] + phases) @ heights
        shown.append(values + rng.normal(0, 6, values.shape))
    return np.clip(shown, 0, 255).astype(np.uint8)


def write(folder: Path, count: int, seed: int) -> Path:
    """Write ``count`` videos of each motion into a folder per motion, and return the folder of them all."""
    rng = np.random.default_rng(seed)
    for motion in MOTIONS:
        (folder / motion).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            with av.open(str(folder / motion / f"{number}.mp4"), "w") as file:
                stream = file.add_stream("mpeg4", rate=RATE, options={"b": "1M", "bf": "2"})
                stream.width = stream.height = SIZE
                stream.pix_fmt = "yuv420p"
                for pixels in frames(motion, rng):
                    file.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
                file.mux(stream.encode(None))
    return folder
