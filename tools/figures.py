# SPDX-License-Identifier: Apache-2.0
"""Figures of the operator pages: tiles with captions, drawn from an example's arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont, ImageOps

Array = npt.NDArray[Any]
Tile = Array | Image.Image

LONGEST = 300  # pixels of the longest side of a figure's largest photograph
GAP, CAPTION, TEXT = 16, 30, 18
THUMBNAIL = (144, 96)
_GROUND, _INK, _DIM, _ACCENT, _PALE = "white", "#263238", "#78909c", "#ff7043", "#fbe9e7"
_CELL = (66, 38)


def draw(tiles: Mapping[str, Tile]) -> Image.Image:
    """Draw the tiles of a figure in rows of two or three, with a caption above each.

    Args:
        tiles: what to show, by caption: images as arrays, ``(H, W)`` or ``(H, W, C)`` with values from 0 to 255, which
            are all scaled by the same factor, or pictures made by the other functions of this module, which are not.

    Raises:
        ValueError: there are no tiles, or an array is not an image.
    """
    if not tiles:
        raise ValueError("expected at least one tile, got none")
    arrays = [x for x in tiles.values() if not isinstance(x, Image.Image)]
    factor = min(1.0, LONGEST / max((max(x.shape[:2]) for x in arrays), default=LONGEST))
    pictures = {name: x if isinstance(x, Image.Image) else _picture(x, factor) for name, x in tiles.items()}
    font = _font(TEXT)
    names = list(pictures)
    columns = 2 if len(names) in (1, 2, 4) else 3
    rows = [names[i : i + columns] for i in range(0, len(names), columns)]
    widths = [
        max(max(pictures[row[k]].width, round(font.getlength(row[k]))) for row in rows if k < len(row))
        for k in range(len(rows[0]))
    ]
    heights = [CAPTION + max(pictures[name].height for name in row) for row in rows]
    size = (sum(widths) + GAP * (len(widths) + 1), sum(heights) + GAP * (len(rows) + 1))
    sheet = Image.new("RGB", size, _GROUND)
    pen = ImageDraw.Draw(sheet)
    y = GAP
    for row, height in zip(rows, heights, strict=True):
        x = GAP
        for name, width in zip(row, widths, strict=False):
            pen.text((x, y), name, _INK, font)
            sheet.paste(pictures[name], (x, y + CAPTION))
            x += width + GAP
        y += height + GAP
    return sheet


def thumbnail(tiles: Mapping[str, Tile]) -> Image.Image:
    """Return the last tile of a figure, which shows a result, as a small picture of fixed size."""
    tile = list(tiles.values())[-1]
    picture = tile if isinstance(tile, Image.Image) else _picture(tile, min(1.0, LONGEST / max(tile.shape[:2])))
    if isinstance(tile, Image.Image):  # drawn: all of it is shown
        return ImageOps.pad(picture, THUMBNAIL, Image.Resampling.LANCZOS, _GROUND)
    return ImageOps.fit(picture, THUMBNAIL, Image.Resampling.LANCZOS)


def outlined(image: Array, *boxes: Iterable[float]) -> Array:
    """Return a copy of an image with the outlines of boxes ``(y0, x0, y1, x1)``."""
    shown = Image.fromarray(np.ascontiguousarray(image))
    pen = ImageDraw.Draw(shown)
    for box in boxes:
        y0, x0, y1, x1 = (int(v) for v in box)
        pen.rectangle((x0, y0, x1, y1), outline=_ACCENT, width=max(2, image.shape[1] // 120))
    return np.asarray(shown)


def rescaled(x: Array) -> Array:
    """Return values stretched to 0 to 255, for data that are not in an image's range."""
    low, high = float(np.min(x)), float(np.max(x))
    return np.asarray((x - low) * (255 / max(high - low, 1e-9)))


def sheet(images: Iterable[Array], columns: int) -> Array:
    """Return the images of a batch, all of one size, in rows of ``columns``."""
    shown = [np.pad(image, ((2, 2), (2, 2), (0, 0)), constant_values=255) for image in images]
    lines = [np.concatenate(shown[i : i + columns], 1) for i in range(0, len(shown), columns)]
    return np.concatenate(lines)


def cells(x: Array, *, rows: Array | None = None, column: bool = False) -> Image.Image:
    """Draw a small array of one or two axes as a table of its elements.

    Args:
        x: the array.
        rows: mask of the rows to highlight; by default all.
        column: draw an array of one axis from top to bottom.
    """
    table = np.atleast_2d(np.asarray(x))
    table = table.T if column else table
    shown = np.ones(len(table), bool) if rows is None else rows
    width, height = _CELL
    picture = Image.new("RGB", (table.shape[1] * width + 1, len(table) * height + 1), _GROUND)
    pen, font = ImageDraw.Draw(picture), _font(TEXT)
    for (i, j), value in np.ndenumerate(table):
        box = (j * width, i * height, (j + 1) * width, (i + 1) * height)
        pen.rectangle(box, fill=_PALE if shown[i] else _GROUND, outline=_DIM)
        text = f"{value:g}" if table.dtype.kind == "f" else str(value)
        pen.text(((j + 0.5) * width, (i + 0.5) * height), text, _INK if shown[i] else _DIM, font, anchor="mm")
    return picture


def ragged(rows: Iterable[Array]) -> Image.Image:
    """Draw the rows of a batch, small arrays of one axis and any length, one below the other."""
    lines = [cells(row) for row in rows]
    picture = Image.new("RGB", (max(line.width for line in lines), sum(line.height - 1 for line in lines) + 1), _GROUND)
    y = 0
    for line in lines:
        picture.paste(line, (0, y))
        y += line.height - 1
    return picture


def bars(values: Array, names: Sequence[str]) -> Image.Image:
    """Draw a bar with its value for each of a few numbers that are not negative, with a name below."""
    shown = [float(v) for v in np.asarray(values).reshape(-1)]
    width, height, head, foot = 84, 150, 24, 24
    picture = Image.new("RGB", (width * len(shown), head + height + foot), _GROUND)
    pen, font = ImageDraw.Draw(picture), _font(TEXT)
    for k, (value, name) in enumerate(zip(shown, names, strict=True)):
        middle, top = (k + 0.5) * width, head + height * (1 - value / max(*shown, 1e-9))
        pen.rectangle((middle - 26, top, middle + 26, head + height - 1), fill=_ACCENT)
        pen.text((middle, top - 3), f"{value:.3g}", _INK, font, anchor="mb")
        pen.text((middle, head + height + 4), name, _DIM, _font(15), anchor="ma")
    pen.line((0, head + height, picture.width, head + height), fill=_DIM)
    return picture


def histogram(x: Array, limits: tuple[float, float], bins: int = 64) -> Image.Image:
    """Draw the number of elements in each of ``bins`` equal intervals between the limits."""
    counts, edges = np.histogram(np.asarray(x), bins, limits)
    width, height, foot = LONGEST, 200, 22
    picture = Image.new("RGB", (width, height + foot), _GROUND)
    pen, font = ImageDraw.Draw(picture), _font(15)
    steps = np.linspace(0, width - 1, bins + 1)
    for count, (left, right) in zip(counts, pairwise(steps), strict=True):
        top = height - 1 - (height - 8) * count / max(1, counts.max())
        pen.rectangle((left, top, right, height - 1), fill=_ACCENT, outline=_GROUND)
    pen.line((0, height, width, height), fill=_DIM)
    if bins <= 8 and all(float(e).is_integer() for e in edges):  # one bar per whole number
        for k, (left, right) in enumerate(pairwise(steps)):
            pen.text(((left + right) / 2, height + 4), f"{edges[k]:g}", _DIM, font, anchor="ma")
    else:
        for at, anchor in ((0.0, "la"), (0.5, "ma"), (1.0, "ra")):
            value = limits[0] + at * (limits[1] - limits[0])
            pen.text((at * (width - 1), height + 4), f"{value:g}", _DIM, font, anchor=anchor)
    return picture


def wave(x: Array) -> Image.Image:
    """Draw a signal: the smallest and largest sample of each column of pixels."""
    width, height = LONGEST, 120
    picture = Image.new("RGB", (width, height), _PALE)
    pen, most = ImageDraw.Draw(picture), max(float(np.abs(x).max()), 1e-9)
    samples = np.asarray(x).reshape(-1)
    for column in range(width):
        part = samples[column * len(samples) // width : (column + 1) * len(samples) // width + 1]
        high, low = (height / 2 * (1 - 0.95 * float(v) / most) for v in (part.max(), part.min()))
        pen.line((column, high, column, max(low, high + 1)), fill=_ACCENT)
    return picture


def spectrum(x: Array, height: int = 180) -> Image.Image:
    """Draw a spectrogram with the axes f and t: time to the right, frequency upwards, large values dark."""
    values = 255 - rescaled(np.asarray(x, np.float64))[::-1]
    gray = Image.fromarray(values.round().astype(np.uint8))
    colored = ImageOps.colorize(gray, _INK, _PALE, mid=_ACCENT)
    return colored.resize((LONGEST, height), Image.Resampling.BICUBIC)


def _picture(x: Array, factor: float) -> Image.Image:
    """Return an array as a picture, scaled by ``factor``."""
    pixels = np.asarray(x)
    pixels = pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels
    if pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] != 3):
        raise ValueError(f"expected an image (H, W), (H, W, 1) or (H, W, 3), got an array of shape {pixels.shape}")
    picture = Image.fromarray(np.ascontiguousarray(np.clip(np.rint(pixels), 0, 255).astype(np.uint8))).convert("RGB")
    size = (max(1, round(picture.width * factor)), max(1, round(picture.height * factor)))
    return picture.resize(size, Image.Resampling.LANCZOS) if factor < 1 else picture


def _font(size: int) -> ImageFont.FreeTypeFont:
    found = ImageFont.load_default(size)
    assert isinstance(found, ImageFont.FreeTypeFont), "Pillow was built without FreeType"
    return found
