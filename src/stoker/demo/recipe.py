# SPDX-License-Identifier: Apache-2.0
"""Recipe of a synthetic photograph: a seeded crop, turn, flip and colour shift of a source, encoded like typical JPEGs.

Sizes, qualities and chroma samplings are drawn so that a set of them resembles ImageNet: about 0.19 megapixel and 80 kB
each, mostly around 500x375, some upright, some large, a few gray. The draws depend on (seed, index) alone.
"""

from __future__ import annotations

import io
import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from PIL import Image

from .photos import Photo

GRAY_SHARE = 0.04

_LONG_SIDE, _LONG_SIDE_WEIGHT = ((500, 480, 640, 320, 256, 1024, 1280), (0.55, 0.26, 0.01, 0.10, 0.06, 0.01, 0.01))
_ASPECTS, _ASPECT_WEIGHT = ((4 / 3, 3 / 2, 1.0, 16 / 9, 1.2), (0.46, 0.32, 0.08, 0.06, 0.08))
_SAMPLINGS, _SAMPLING_WEIGHT = ("4:2:0", "4:4:4", "4:2:2"), (0.62, 0.26, 0.12)
_TURN_SHARE, _MAX_TURN_DEGREES = 0.4, 10.0
_GRAIN_TILE = 2048


@dataclass(frozen=True)
class Recipe:
    """All values drawn for one image, except for the source photograph's pixels."""

    photo: int
    width: int
    height: int
    turn_degrees: float
    mirror: bool
    zoom: float
    centre: tuple[float, float]
    gain: tuple[float, float, float]
    gamma: float
    grain: float
    grain_at: tuple[int, int]
    quality: int
    sampling: str


def draw(seed: int, index: int, photos: list[Photo]) -> Recipe:
    """Draw the recipe of image `index`. The photographs alternate, so that classes have nearly equal numbers."""
    rng = np.random.default_rng([seed, index])
    colour = [i for i, photo in enumerate(photos) if not photo.gray]
    gray = [i for i, photo in enumerate(photos) if photo.gray]
    use_gray = bool(gray) and rng.random() < GRAY_SHARE
    pool = gray if use_gray else colour
    long_side = int(rng.choice(_LONG_SIDE, p=_LONG_SIDE_WEIGHT))
    short_side = round(long_side / float(rng.choice(_ASPECTS, p=_ASPECT_WEIGHT))) + int(rng.integers(-2, 3))
    upright = rng.random() < 0.28
    return Recipe(
        photo=pool[int(rng.integers(len(pool))) if use_gray else index % len(pool)],
        width=short_side if upright else long_side,
        height=long_side if upright else short_side,
        turn_degrees=float(rng.uniform(-_MAX_TURN_DEGREES, _MAX_TURN_DEGREES)) if rng.random() < _TURN_SHARE else 0.0,
        mirror=bool(rng.random() < 0.5),
        zoom=float(rng.uniform(0.45, 1.0)),
        centre=(float(rng.random()), float(rng.random())),
        gain=(float(rng.uniform(0.92, 1.08)), float(rng.uniform(0.95, 1.05)), float(rng.uniform(0.92, 1.08))),
        gamma=float(rng.uniform(0.85, 1.18)),
        grain=float(rng.uniform(3.5, 8.0)),
        grain_at=(int(rng.integers(512)), int(rng.integers(512))),
        quality=int(rng.choice((75, 84, 90, 93, 95, 96, 96, 96))),
        sampling=str(rng.choice(_SAMPLINGS, p=_SAMPLING_WEIGHT)),
    )


def render(recipe: Recipe, source: Image.Image) -> bytes:
    """Apply a recipe to its photograph and encode the result as a baseline JPEG."""
    image = _add_grain(_shift_colour(_cut(recipe, source), recipe), recipe)
    buffer = io.BytesIO()
    sampling = {} if image.mode == "L" else {"subsampling": recipe.sampling}
    image.save(buffer, "JPEG", quality=recipe.quality, **sampling)
    return buffer.getvalue()


def _cut(recipe: Recipe, source: Image.Image) -> Image.Image:
    """Crop, turn, mirror and scale; the turned window stays inside the photograph."""
    angle = math.radians(recipe.turn_degrees)
    cos, sin = math.cos(angle), math.sin(angle)
    span_x = recipe.width * cos + recipe.height * abs(sin)
    span_y = recipe.width * abs(sin) + recipe.height * cos
    scale = recipe.zoom * min(source.width / span_x, source.height / span_y)
    if angle and scale > 1.5:  # affine sampling does not average, so a strong reduction starts from a halved source
        return _cut(recipe, source.reduce(2))
    x = span_x * scale / 2 + recipe.centre[0] * (source.width - span_x * scale)
    y = span_y * scale / 2 + recipe.centre[1] * (source.height - span_y * scale)
    size = (recipe.width, recipe.height)
    half_w, half_h = recipe.width / 2, recipe.height / 2
    if angle:
        a, b, d, e = scale * cos, -scale * sin, scale * sin, scale * cos
        matrix = (a, b, x - a * half_w - b * half_h, d, e, y - d * half_w - e * half_h)
        image = source.transform(size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)
    else:
        box = (x - scale * half_w, y - scale * half_h, x + scale * half_w, y + scale * half_h)
        image = source.resize(size, Image.Resampling.BICUBIC, tuple(np.clip(box, 0, source.size * 2).tolist()))
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if recipe.mirror else image


def _shift_colour(image: Image.Image, recipe: Recipe) -> Image.Image:
    ramp = 255.0 * (np.arange(256) / 255.0) ** recipe.gamma
    gains = recipe.gain if image.mode == "RGB" else (1.0,)
    table = np.concatenate([np.clip(np.rint(ramp * gain), 0, 255) for gain in gains])
    return image.point(table.astype(int).tolist())


def _add_grain(image: Image.Image, recipe: Recipe) -> Image.Image:
    """Add sensor grain, so that the smooth enlargements compress no better than photographs do."""
    row, column = recipe.grain_at
    grain = _grain_tile()[row : row + image.height, column : column + image.width]
    scaled = (grain * round(recipe.grain * 8)) >> 8
    pixels = np.asarray(image).astype(np.int16)
    pixels += scaled if image.mode == "L" else scaled[..., np.newaxis]
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


@lru_cache(maxsize=1)
def _grain_tile() -> np.ndarray:
    """Return normal noise of standard deviation 32, as int16."""
    normal = np.random.default_rng(0).standard_normal((_GRAIN_TILE, _GRAIN_TILE), dtype=np.float32)
    return np.rint(normal * 32).astype(np.int16)
