# SPDX-License-Identifier: Apache-2.0
"""Contact sheet: cards with one or more thumbnails and a caption each, on a dark ground."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

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
_TEXT_GAP = 6  # between a picture and its caption
_SMALL, _LARGE = 13, 22


@dataclass(frozen=True)
class Card:
    """One sample.

    Attributes:
        tiles: thumbnails at most ``TILE`` pixels high; None for an empty picture. Strips of clips may be wider.
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
    widths = _tile_widths(cards)
    card_width = sum(widths) + GAP * (len(widths) - 1)
    columns = min(len(cards), max(1, (WIDTH + 2 * GAP) // (card_width + 2 * GAP)))
    pictures = [tile for card in cards for tile in card.tiles if tile is not None]
    # Strips of clips are low, and need no square panels.
    panel = max(tile.height for tile in pictures) if max(widths) > TILE else TILE
    text_top = panel + _TEXT_GAP if any(card.tiles for card in cards) else 0
    card_height = text_top + _LINE * (1 + max(len(card.lines) for card in cards))
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
        _draw_card(sheet, pen, card, at, widths, text_top)
    return sheet


def _tile_widths(cards: Sequence[Card]) -> list[int]:
    """Return the width of each tile of a card, which is that of the widest picture in its column."""
    columns = zip_longest(*(card.tiles for card in cards))
    return [max(TILE, *(tile.width for tile in tiles if tile is not None)) if any(tiles) else TILE
            for tiles in columns] or [TILE]  # fmt: skip


def _draw_header(pen: ImageDraw.ImageDraw, header: str, lines: Sequence[str], width: int) -> None:
    pen.rectangle((MARGIN, MARGIN + 2, MARGIN + 4, MARGIN + 26), fill=ACCENT)
    draw_text(pen, (MARGIN + 16, MARGIN), shorten(pen, header, _LARGE, width - 16), BRIGHT, _LARGE)
    for number, line in enumerate(lines):
        at = MARGIN, MARGIN + 36 + number * _LINE
        draw_text(pen, at, shorten(pen, line, _SMALL, width), DIM, _SMALL)


def _draw_card(
    sheet: Image.Image, pen: ImageDraw.ImageDraw, card: Card, at: tuple[int, int], widths: Sequence[int], text_top: int
) -> None:
    x, y = at
    panel = text_top - _TEXT_GAP
    lefts = [x + sum(widths[:number]) + GAP * number for number in range(len(widths))]
    for left, width, tile in zip(lefts, widths, card.tiles, strict=False):
        pen.rounded_rectangle((left, y, left + width - 1, y + panel - 1), _RADIUS, fill=PANEL)
        if tile is None:
            draw_text(pen, (left + 10, y + panel // 2 - 8), "empty", DIM, _SMALL)
        else:
            sheet.paste(tile, (left + (width - tile.width) // 2, y + (panel - tile.height) // 2))
    for number, line in enumerate((card.title, *card.lines)):
        text = shorten(pen, line, _SMALL, lefts[-1] + widths[-1] - x)
        draw_text(pen, (x + 1, y + text_top + number * _LINE), text, DIM if number else BRIGHT, _SMALL)
