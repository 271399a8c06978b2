# SPDX-License-Identifier: Apache-2.0
"""The contact sheet: it shows every sample, at its position, with its colours."""

from __future__ import annotations

import numpy as np
import pytest

from stoker.demo.sheet import CAPTION, GAP, TILE, Row, draw_sheet

COLUMNS = ("crop", "flip", "a heading that is much too long for the width of one column of tiles")


def flat(colour: tuple[int, int, int], height: int = 224, width: int = 224) -> np.ndarray:
    return np.broadcast_to(np.array(colour, np.uint8), (height, width, 3))


def rows(count: int) -> list[Row]:
    return [
        Row(
            f"class {number}",
            "a file name that is far too long to be shown in full length below its tile on the sheet.jpg",
            flat((200, 40 * number, 0), 300, 500),
            [flat((10, 60 * column, 30 * number)) for column in range(1, 4)],
        )
        for number in range(count)
    ]


def test_every_tile_lies_in_its_cell() -> None:
    sheet = np.asarray(draw_sheet(rows(3), "header", "text", COLUMNS))
    first_y, first_x = np.argwhere((sheet == (200, 0, 0)).all(axis=-1)).min(axis=0)
    for number in range(3):
        original = np.argwhere((sheet == (200, 40 * number, 0)).all(axis=-1))
        top = first_y + number * (TILE + CAPTION + GAP)
        assert original.min(axis=0).tolist() == [top, first_x]
        assert (np.ptp(original, axis=0) + 1).tolist() == [TILE * 300 // 500, TILE]
        lefts = []
        for column in range(1, 4):
            pixels = np.argwhere((sheet == (10, 60 * column, 30 * number)).all(axis=-1))
            assert (np.ptp(pixels, axis=0) + 1).tolist() == [TILE, TILE]
            lefts.append(int(pixels[:, 1].min()))
        assert np.diff(lefts).tolist() == [TILE + GAP, TILE + GAP]


def test_the_size_follows_the_number_of_tiles() -> None:
    small = draw_sheet(rows(1), "header", "text", COLUMNS)
    large = draw_sheet(rows(4), "header", "text", COLUMNS)
    assert large.width == small.width
    assert large.height - small.height == 3 * (TILE + CAPTION + GAP)


def test_small_images_are_not_enlarged() -> None:
    sheet = np.asarray(draw_sheet([Row("a", "b", flat((250, 1, 2), 20, 30))], "header", "text", ()))
    tile = np.argwhere((sheet == (250, 1, 2)).all(axis=-1))
    assert (np.ptp(tile, axis=0) + 1).tolist() == [20, 30]


def test_nothing_and_uneven_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one row"):
        draw_sheet([], "header", "text", COLUMNS)
    with pytest.raises(ValueError, match="expected 3 samples, got 0"):
        draw_sheet([Row("a", "b", flat((1, 2, 3)))], "header", "text", COLUMNS)
