# SPDX-License-Identifier: Apache-2.0
"""Contact sheet: for each photograph a row with the original and several augmentations, on a dark ground."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from PIL import Image, ImageDraw

from ..display.fonts import draw_text, shorten, text_width

Array = np.ndarray

TILE = 200
GAP = 10
MARGIN = 36
CAPTION = 24

_GROUND = (18, 20, 24)
_PANEL = (30, 33, 39)
_BRIGHT = (236, 239, 244)
_DIM = (142, 150, 163)
_ACCENT = (255, 148, 64)
_RADIUS = 6


@dataclass(frozen=True)
class Row:
    """Photograph with its augmentations.

    Attributes:
        title: Bright text under the original: its class.
        note: Dim text next to the title: its file name.
        original: The decoded photograph, uint8 (H, W, 3).
        samples: Augmentations of it, uint8 (H, W, 3) each, any size.
    """

    title: str
    note: str
    original: Array
    samples: Sequence[Array] = field(default_factory=tuple)


def draw_sheet(rows: Sequence[Row], header: str, text: str, columns: Sequence[str]) -> Image.Image:
    """Draw the sheet.

    Args:
        rows: The photographs with their augmentations.
        header: The large line on top.
        text: The line below it.
        columns: A heading for each column of augmentations.

    Raises:
        ValueError: There are no rows, or the samples of a row do not match the columns.
    """
    for row in rows:
        if len(row.samples) != len(columns):
            raise ValueError(f"row {row.title!r}: expected {len(columns)} samples, got {len(row.samples)}.")
    if not rows:
        raise ValueError("expected at least one row, got none.")
    top = MARGIN + 92
    width = 2 * MARGIN + (1 + len(columns)) * (TILE + GAP) + GAP
    sheet = Image.new("RGB", (width, top + len(rows) * (TILE + CAPTION + GAP) + MARGIN - GAP), _GROUND)
    pen = ImageDraw.Draw(sheet)
    _draw_heading(pen, header, text, columns, top)
    for index, row in enumerate(rows):
        _draw_row(sheet, pen, row, top + index * (TILE + CAPTION + GAP))
    return sheet


def _draw_heading(pen: ImageDraw.ImageDraw, header: str, text: str, columns: Sequence[str], top: int) -> None:
    pen.rectangle((MARGIN, MARGIN + 2, MARGIN + 5, MARGIN + 45), fill=_ACCENT)
    draw_text(pen, (MARGIN + 18, MARGIN - 4), header, _BRIGHT, 26)
    draw_text(pen, (MARGIN + 18, MARGIN + 30), text, _DIM, 15)
    for column, name in enumerate(("original", *columns)):
        colour = _DIM if column else _ACCENT
        draw_text(pen, (_left(column) + 2, top - 22), shorten(pen, name, 13, TILE), colour, 13)


def _draw_row(sheet: Image.Image, pen: ImageDraw.ImageDraw, row: Row, y: int) -> None:
    for column, pixels in enumerate((row.original, *row.samples)):
        x = _left(column)
        pen.rounded_rectangle((x, y, x + TILE - 1, y + TILE - 1), _RADIUS, fill=_PANEL)
        tile = Image.fromarray(np.ascontiguousarray(pixels))
        tile.thumbnail((TILE, TILE), Image.Resampling.LANCZOS)
        sheet.paste(tile, (x + (TILE - tile.width) // 2, y + (TILE - tile.height) // 2), _rounded(tile.size))
    title = shorten(pen, row.title, 13, TILE)
    draw_text(pen, (_left(0) + 2, y + TILE + 4), title, _BRIGHT, 13)
    used = text_width(pen, title, 13) + 12
    note = shorten(pen, row.note, 12, 2 * TILE - used)
    draw_text(pen, (_left(0) + 2 + used, y + TILE + 5), note, _DIM, 12)


def _left(column: int) -> int:
    """Return the left edge of a column. The originals have a larger gap."""
    return MARGIN + column * (TILE + GAP) + (GAP if column else 0)


def _rounded(size: tuple[int, int]) -> Image.Image:
    mask = Image.new("L", size, 0)
    ImageDraw.Draw(mask).rounded_rectangle((0, 0, size[0] - 1, size[1] - 1), _RADIUS, fill=255)
    return mask
