# SPDX-License-Identifier: Apache-2.0
"""Contact sheet: cards with one or more thumbnails and a caption each, on a dark ground."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PIL import Image, ImageDraw

from .fonts import draw_text, shorten

TILE = 176
GAP = 10
MARGIN = 28
WIDTH = 1120  # of a sheet, if its cards are narrower

GROUND = (18, 20, 24)
PANEL = (30, 33, 39)
BRIGHT = (236, 239, 244)
DIM = (142, 150, 163)
ACCENT = (255, 148, 64)
_RADIUS = 6
_LINE = 18
_SMALL, _LARGE = 13, 22


@dataclass(frozen=True)
class Card:
    """One sample.

    Attributes:
        tiles: thumbnails of at most ``TILE`` pixels; None for an empty picture.
        title: caption.
        lines: further text, one line each.
    """

    tiles: Sequence[Image.Image | None]
    title: str
    lines: Sequence[str] = ()


def draw_cards(cards: Sequence[Card], header: str, lines: Sequence[str]) -> Image.Image:
    """Draw cards in a grid.

    Args:
        cards: samples; at least one.
        header: the large line on top.
        lines: lines below the header.

    Raises:
        ValueError: there are no cards.
    """
    if not cards:
        raise ValueError("expected at least one card, got none")
    tiles = max(1, max(len(card.tiles) for card in cards))
    card_width = tiles * (TILE + GAP) - GAP
    columns = min(len(cards), max(1, (WIDTH + 2 * GAP) // (card_width + 2 * GAP)))
    has_tiles = any(card.tiles for card in cards)
    card_height = (TILE + 6 if has_tiles else 0) + _LINE * (1 + max(len(card.lines) for card in cards))
    top = MARGIN + 36 + _LINE * len(lines) + GAP
    rows = -(-len(cards) // columns)
    size = (
        max(2 * MARGIN + columns * (card_width + 2 * GAP) - 2 * GAP, 640),
        top + rows * (card_height + 2 * GAP) - 2 * GAP + MARGIN,
    )
    sheet = Image.new("RGB", size, GROUND)
    pen = ImageDraw.Draw(sheet)
    _draw_header(pen, header, lines, size[0] - 2 * MARGIN)
    for number, card in enumerate(cards):
        row, column = divmod(number, columns)
        at = MARGIN + column * (card_width + 2 * GAP), top + row * (card_height + 2 * GAP)
        _draw_card(sheet, pen, card, at, card_width, TILE + 6 if has_tiles else 0)
    return sheet


def _draw_header(pen: ImageDraw.ImageDraw, header: str, lines: Sequence[str], width: int) -> None:
    pen.rectangle((MARGIN, MARGIN + 2, MARGIN + 4, MARGIN + 26), fill=ACCENT)
    draw_text(pen, (MARGIN + 16, MARGIN), shorten(pen, header, _LARGE, width - 16), BRIGHT, _LARGE)
    for number, line in enumerate(lines):
        at = MARGIN, MARGIN + 36 + number * _LINE
        draw_text(pen, at, shorten(pen, line, _SMALL, width), DIM, _SMALL)


def _draw_card(
    sheet: Image.Image, pen: ImageDraw.ImageDraw, card: Card, at: tuple[int, int], width: int, text_top: int
) -> None:
    x, y = at
    for number, tile in enumerate(card.tiles):
        left = x + number * (TILE + GAP)
        pen.rounded_rectangle((left, y, left + TILE - 1, y + TILE - 1), _RADIUS, fill=PANEL)
        if tile is None:
            draw_text(pen, (left + 10, y + TILE // 2 - 8), "empty", DIM, _SMALL)
        else:
            sheet.paste(tile, (left + (TILE - tile.width) // 2, y + (TILE - tile.height) // 2))
    for number, line in enumerate((card.title, *card.lines)):
        text = shorten(pen, line, _SMALL, width)
        draw_text(pen, (x + 1, y + text_top + number * _LINE), text, DIM if number else BRIGHT, _SMALL)
